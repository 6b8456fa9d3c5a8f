#include "simulate/plot.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace fairlead::simulate {

namespace {

constexpr double kWidth = 820;
constexpr double kHeight = 400;
constexpr double kLeft = 70;
constexpr double kRight = 190;  // the legend stands there
constexpr double kTop = 70;
constexpr double kBottom = 46;
constexpr size_t kLabelRowsMax = 3;
constexpr size_t kLegendMax = 14;
constexpr size_t kLegendLettersMax = 21;

// Told apart by people with any kind of colour vision (Okabe and Ito).
constexpr std::array<const char*, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#e69f00", "#000000", "#999933"};

std::string escaped(std::string text) {
  // XML has no way to write most control characters.
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// At most so many letters of UTF-8, of which each begins with a byte that is not 10xxxxxx.
std::string shortened(const std::string& text, size_t letters_max) {
  size_t letters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins_letter = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (begins_letter && ++letters > letters_max) return text.substr(0, i) + "…";
  }
  return text;
}

// 1, 2 or 5 times a power of ten: about six of them fill the axis.
double step_of(double range) {
  const double rough = range / 6;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// A text beside the line that marks its moment: to the right, if it fits there.
struct Label {
  Label(double place, std::string what) : at(place), text(std::move(what)) {}

  double width() const { return 6 * static_cast<double>(text.size() + 1); }
  bool is_right() const { return at + width() < kWidth; }
  double left() const { return is_right() ? at : at - width(); }

  double at;
  std::string text;
  size_t row = 0;  // 0 is the lowest
};

// Gives each label a row, the highest where neither its text nor the line below it runs into an
// earlier text. False: there are too few rows for that.
bool arrange(size_t rows, std::vector<Label>* labels) {
  bool is_good = true;
  std::vector<double> ends(rows, 0);
  for (auto& label : *labels) {
    size_t free = 0;
    while (free < rows && ends[free] <= label.left()) ++free;
    is_good = is_good && free > 0;
    label.row = free > 0 ? free - 1 : 0;
    ends[label.row] = label.left() + label.width();
  }
  return is_good;
}

class Picture {
 public:
  Picture(const Plan& plan, const Result& result) : plan_(plan), result_(result) {
    seconds_ = static_cast<double>(plan.duration) / kSecond;
    for (const auto& sample : result.samples) {
      for (const int64_t count : sample.dispatched) {
        tasks_ = std::max(tasks_, static_cast<double>(count));
      }
      if (!plan.has_ideal()) continue;
      for (const double due : sample.due) tasks_ = std::max(tasks_, due);
    }
  }

  std::string draw() {
    absl::StrAppendFormat(
        &out_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
        "height=\"%g\" font-family=\"sans-serif\" font-size=\"12\">\n",
        kWidth, kHeight, kWidth, kHeight);
    absl::StrAppendFormat(&out_, "<rect width=\"%g\" height=\"%g\" fill=\"#ffffff\"/>\n", kWidth,
                          kHeight);
    text(kLeft, 18, "start", plan_.title, " font-size=\"15\" font-weight=\"bold\"");
    axes();
    events();
    for (size_t group = 0; group < plan_.keys.size() && plan_.has_ideal(); ++group) {
      line(group, true);
    }
    for (size_t group = 0; group < plan_.keys.size(); ++group) line(group, false);
    legend();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  double x(double seconds) const { return kLeft + seconds / seconds_ * (kWidth - kLeft - kRight); }
  double y(double tasks) const {
    return kHeight - kBottom - tasks / tasks_ * (kHeight - kTop - kBottom);
  }

  void text(double at_x, double at_y, const char* anchor, const std::string& what,
            const std::string& more = "") {
    absl::StrAppendFormat(
        &out_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"#333333\"%s>%s</text>\n",
        at_x, at_y, anchor, more, escaped(what));
  }
  void stroke(double x1, double y1, double x2, double y2, const char* style) {
    absl::StrAppendFormat(&out_, "<path d=\"M%.1f %.1fL%.1f %.1f\" %s/>\n", x1, y1, x2, y2, style);
  }

  void axes() {
    constexpr const char* kGrid = "stroke=\"#dddddd\"";
    constexpr const char* kAxis = "stroke=\"#333333\"";
    const double tasks_step = std::max(1.0, step_of(tasks_));
    for (int i = 0; i * tasks_step <= tasks_ * 1.0001; ++i) {
      const double at = i * tasks_step;
      if (i > 0) stroke(kLeft, y(at), kWidth - kRight, y(at), kGrid);
      text(kLeft - 8, y(at) + 4, "end", absl::StrFormat("%.0f", at));
    }
    const double seconds_step = step_of(seconds_);
    for (int i = 0; i * seconds_step <= seconds_ * 1.0001; ++i) {
      const double at = i * seconds_step;
      stroke(x(at), y(0), x(at), y(0) + 5, kAxis);
      text(x(at), y(0) + 18, "middle", absl::StrFormat("%g", at));
    }
    stroke(kLeft, y(0), kWidth - kRight, y(0), kAxis);
    stroke(kLeft, y(0), kLeft, kTop, kAxis);
    text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "seconds");
    const double middle = (kTop + kHeight - kBottom) / 2;
    text(18, middle, "middle", "tasks dispatched",
         absl::StrFormat(" transform=\"rotate(-90 18 %.1f)\"", middle));
  }

  // What happened stands above the axes, on as few lines of text as do without one running into
  // another.
  void events() {
    std::vector<Label> labels;
    for (const auto& event : plan_.events) {
      if (event.at <= plan_.duration) {
        labels.emplace_back(x(static_cast<double>(event.at) / kSecond), event.text());
      }
    }
    size_t rows = 1;
    while (!arrange(rows, &labels) && rows < kLabelRowsMax) ++rows;
    for (const auto& label : labels) {
      const double bottom = kTop - 8 - 13 * static_cast<double>(label.row);
      stroke(label.at, y(0), label.at, bottom - 8, "stroke=\"#888888\" stroke-dasharray=\"2 3\"");
      text(label.is_right() ? label.at + 4 : label.at - 4, bottom,
           label.is_right() ? "start" : "end", label.text, " font-size=\"11\"");
    }
  }

  void line(size_t group, bool is_ideal) {
    out_ += "<path d=\"";
    char command = 'M';
    for (const auto& sample : result_.samples) {
      const double tasks =
          is_ideal ? sample.due[group] : static_cast<double>(sample.dispatched[group]);
      absl::StrAppendFormat(&out_, "%c%.1f %.1f", command,
                            x(static_cast<double>(sample.at) / kSecond), y(tasks));
      command = 'L';
    }
    absl::StrAppendFormat(
        &out_, "\" fill=\"none\" stroke=\"%s\" %s/>\n", colour(group),
        is_ideal ? "stroke-width=\"1.2\" stroke-dasharray=\"5 4\"" : "stroke-width=\"2\"");
  }

  void legend() {
    const double left = kWidth - kRight + 18;
    double top = kTop + 6;
    for (size_t group = 0; group < plan_.keys.size(); ++group, top += 20) {
      if (group == kLegendMax) {
        text(left + 30, top, "start", absl::StrCat("and ", plan_.keys.size() - group, " more"));
        top += 20;
        break;
      }
      absl::StrAppendFormat(&out_, "<path d=\"M%.1f %.1fh22\" stroke=\"%s\" stroke-width=\"3\"/>\n",
                            left, top - 4, colour(group));
      text(left + 30, top, "start", shortened(plan_.keys[group].text(), kLegendLettersMax));
    }
    if (!plan_.has_ideal()) return;
    absl::StrAppendFormat(
        &out_, "<path d=\"M%.1f %.1fh22\" stroke=\"#333333\" stroke-dasharray=\"5 4\"/>\n", left,
        top + 2);
    text(left + 30, top + 6, "start", "ideal share");
  }

  static const char* colour(size_t group) { return kColours[group % kColours.size()]; }

  const Plan& plan_;
  const Result& result_;
  double seconds_ = 1;
  double tasks_ = 1;
  std::string out_;
};

}  // namespace

std::string plot(const Plan& plan, const Result& result) { return Picture(plan, result).draw(); }

}  // namespace fairlead::simulate
