# Sourced by ./ullage and ./test: installs the distribution's packages that are missing.

BUILD_PACKAGES=(cmake ninja-build g++ nlohmann-json3-dev libcli11-dev libfmt-dev libexpected-dev
                libcurl4-openssl-dev libyaml-dev)
TEST_PACKAGES=("${BUILD_PACKAGES[@]}" libgtest-dev librapidcheck-dev valgrind python3 python3-jsonschema)
# For the tests that open pages; Ubuntu has no such package, and those tests are skipped there.
BROWSER_PACKAGES=(chromium chromium-driver python3-selenium)
CI_PACKAGES=("${TEST_PACKAGES[@]}" git emscripten)

# What a package is wanted for, where a program of another origin does as well.
declare -A PACKAGE_PROGRAM=([cmake]=cmake [ninja-build]=ninja [g++]=g++ [git]=git [valgrind]=valgrind)

is_installed() {
  local program=${PACKAGE_PROGRAM[$1]:-}
  if [[ -n $program ]]; then
    command -v "$program" >/dev/null
  else
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
  fi
}

missing_packages() {
  local package
  for package; do
    is_installed "$package" || echo "$package"
  done
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "ullage: needs root and there is no sudo; run as root: $*" >&2
    return 1
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "$@" >&2
}

# require_packages PACKAGE…: says which are missing and installs those.
require_packages() {
  local missing
  if ! command -v apt-get >/dev/null; then
    echo "ullage: no apt-get here; taking it that these are installed by other means: $*" >&2
    return 0
  fi
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  echo "ullage: installing missing packages: ${missing[*]}" >&2
  # The lists of a fresh image are empty and those of an old one name versions that are gone.
  apt install "${missing[@]}" || { apt update && apt install "${missing[@]}"; } || {
    echo "ullage: could not install ${missing[*]}; install them and try again" >&2
    return 1
  }
}

# first_available PACKAGE…: the first that is installed or that apt offers.
first_available() {
  local package
  for package; do
    if is_installed "$package" || apt-cache show "$package" >/dev/null 2>&1; then
      echo "$package"
      return
    fi
  done
}
