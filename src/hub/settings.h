// Where the Hub is, who asks and where files are kept, as the Hub's own tools read it from the environment.
#pragma once

#include <functional>
#include <string>

namespace ullage::hub {

struct Settings {
  std::string endpoint = "https://huggingface.co";  // without a slash behind
  std::string token;                                // empty: nobody in particular
  std::string cache;                                // the folder of models--ORG--NAME; empty: nothing is kept
  std::string beginnings;  // ours, where the first bytes of large files are kept; empty: they are not
  bool offline = false;
  int timeout_seconds = 10;  // to connect, and between two bytes
};

// The value of a variable; empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

// HF_ENDPOINT, HF_TOKEN (or the file HF_TOKEN_PATH, else HF_HOME/token), HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HOME,
// HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT, HF_HUB_DISABLE_IMPLICIT_TOKEN and the older names of these.
// Source: huggingface_hub 1.23, constants.py and utils/_auth.py.
Settings settings_of(const Environment& environment);

}  // namespace ullage::hub
