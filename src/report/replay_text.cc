#include "report/replay.h"

namespace ullage::report {
namespace {

Message difference_message(const evidence::ReplayDifference& d) {
  const auto event = static_cast<std::int64_t>(d.event);
  if (d.freed) return {Text::replay_not_freed, {{"event", event}, {"bytes", Bytes{d.recorded_bytes.value_or(0)}}}};
  if (!d.made_bytes) return {Text::replay_not_made, {{"event", event}, {"bytes", Bytes{d.recorded_bytes.value_or(0)}}}};
  if (!d.recorded_bytes) {
    return {Text::replay_made_alone,
            {{"event", event}, {"bytes", Bytes{*d.made_bytes}}, {"request", Bytes{d.requested_bytes}}}};
  }
  return {Text::replay_other_size,
          {{"event", event},
           {"recorded", Bytes{*d.recorded_bytes}},
           {"made", Bytes{*d.made_bytes}},
           {"request", Bytes{d.requested_bytes}}}};
}

void write_file_lines(TextPage& page, const ReplayedFile& file) {
  const evidence::ReplayResult& r = file.result;
  page.line(page.toned(file.name, TextPage::Tone::strong));
  page.line("  " + page.say(Message{Text::replay_segments,
                                    {{"events", Count{r.events}},
                                     {"recorded", Count{r.segments_recorded}},
                                     {"made", Count{r.segments_made}}}}));
  page.line("  " + page.say(Message{
                       Text::replay_reserved,
                       {{"ours", Bytes{r.reserved_bytes_end}}, {"recorded", Bytes{r.reserved_bytes_end_recorded}}}}));
  if (r.first_difference) page.line("  " + page.say(difference_message(*r.first_difference)));
  page.line("  " + page.toned(page.say(r.equal() ? Text::replay_equal : Text::replay_differs),
                              r.equal() ? TextPage::Tone::good : TextPage::Tone::bad));
}

}  // namespace

std::string replay_text(const std::vector<ReplayedFile>& files, const TextStyle& style) {
  TextPage page(style);
  for (const ReplayedFile& file : files) {
    if (style.detail == Detail::quiet) {
      page.line(file.name + ": " + page.say(file.result.equal() ? Text::replay_equal : Text::replay_differs));
    } else {
      write_file_lines(page, file);
    }
  }
  return page.take();
}

}  // namespace ullage::report
