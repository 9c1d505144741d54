"""The project's files as the house tests see them: what is tracked, or everything where there is no git."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(os.environ.get("ULLAGE_SOURCE_DIR", pathlib.Path(__file__).parents[2])).resolve()


def files():
    """Paths relative to ROOT, sorted; new files that git does not ignore count as well."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "-z"],
        capture_output=True, text=True, check=False) if (ROOT / ".git").exists() else None
    if listed is not None and listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if path.is_file() and path.relative_to(ROOT).parts[0] not in (".git", "build")]
    return sorted(name for name in names if (ROOT / name).is_file())


def sources(*folders):
    """The C++ files below the given folders."""
    return [name for name in files()
            if name.endswith((".h", ".cc")) and name.split("/")[0] in folders]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def numbered_lines(name):
    return enumerate(text_of(name).splitlines(), start=1)
