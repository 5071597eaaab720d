//! The short form of a report: a bar for each mechanism, and one sentence about the result.
//!
//! It is the output of a quick run, and fits [`WIDTH`] columns. The tables of the papers stay in the full
//! report.

use std::fmt::Write as _;

use spandrel_measure::stats::Summary;

use crate::machine::Machine;

/// The maximum number of columns of a line.
pub const WIDTH: usize = 100;
/// The least widths of the columns of a row. The bar has the rest.
const NAME_WIDTH: usize = 16;
const VALUE_WIDTH: usize = 16;
const RATIO_WIDTH: usize = 19;
/// The spread of a ratio, in percent of its median, above which it is not believed.
const MOST_SPREAD_PERCENT: f64 = 15.0;
/// The number of rounds below which a median is not believed.
const FEWEST_ROUNDS: usize = 3;

/// The whole short report.
#[derive(Clone, Debug)]
pub(crate) struct Page<'a> {
    pub(crate) machine: &'a Machine,
    /// The settings of the run, and how the figures are to be read.
    pub(crate) introduction: String,
    pub(crate) sections: Vec<Section>,
    /// The names of the mechanisms with their meanings.
    pub(crate) legend: Vec<(&'static str, &'static str)>,
    /// The ratios of the conclusion, each with the range of its rounds.
    pub(crate) ratios: Vec<Summary>,
    /// Where the full report is.
    pub(crate) files: &'a str,
    /// The sentence that says what was found.
    pub(crate) conclusion: String,
}

impl Page<'_> {
    pub(crate) fn text(&self) -> String {
        let mut text = wrapped(&self.machine.summary()) + &wrapped(&self.introduction);
        self.sections.iter().for_each(|section| text.push_str(&section.text()));
        text.push_str("\nMechanisms\n");
        for (name, meaning) in &self.legend {
            _ = writeln!(text, "  {name:NAME_WIDTH$} {meaning}");
        }
        text.push('\n');
        for remark in self.machine.warning().into_iter().chain(doubt(&self.ratios)) {
            text.push_str(&wrapped(&remark));
        }
        text + &wrapped(self.files) + &wrapped(&self.conclusion)
    }
}

/// The results of one workload.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The workload and what a longer bar means.
    pub(crate) heading: String,
    /// The unit of the values.
    pub(crate) unit: &'static str,
    /// The mechanism that the ratios are relative to.
    pub(crate) base: String,
    pub(crate) rows: Vec<Row>,
}

/// The result of one mechanism.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// The value and its text; none for an absent mechanism.
    pub(crate) value: Option<(Summary, String)>,
    /// The ratio to the base, formed within each round.
    pub(crate) ratio: Option<Summary>,
}

impl Section {
    /// The section as lines.
    fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.heading);
        let rows: Vec<(&Row, String, String)> =
            self.rows.iter().filter_map(|row| Some((row, row.value_text()?, row.ratio_text(&self.base)))).collect();
        let widest = |least: usize, widths: &mut dyn Iterator<Item = usize>| widths.fold(least, usize::max);
        let value_width = widest(VALUE_WIDTH, &mut rows.iter().map(|(_, value, _)| value.chars().count()));
        let ratio_width = widest(RATIO_WIDTH, &mut rows.iter().map(|(_, _, ratio)| ratio.chars().count()));
        let bar_width = WIDTH.saturating_sub(2 + NAME_WIDTH + 1 + value_width + 2 + ratio_width + 2);
        let highest = rows.iter().filter_map(|(row, ..)| row.value.as_ref()).map(|(value, _)| value.median);
        let highest = highest.fold(0.0, f64::max);
        _ = writeln!(text, "  {:NAME_WIDTH$} {:>value_width$}  ratio to {}", "", self.unit, self.base);
        for (row, value, ratio) in &rows {
            let bar = row.value.as_ref().map_or_else(String::new, |(value, _)| bar(value.median / highest, bar_width));
            let line = format!("  {:NAME_WIDTH$} {value:>value_width$}  {ratio:ratio_width$}  {bar}", row.name);
            _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

impl Row {
    /// The value with its spread; none for an absent mechanism.
    fn value_text(&self) -> Option<String> {
        let (value, shown) = self.value.as_ref()?;
        Some(format!("{shown} ±{:>3.0} %", value.spread_percent()))
    }

    fn ratio_text(&self, base: &str) -> String {
        match self.ratio {
            _ if self.name == base => "1".to_owned(),
            Some(ratio) => format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high),
            None => String::new(),
        }
    }
}

/// A bar for a part of the highest value, of at least half a column.
fn bar(part: f64, width: usize) -> String {
    let halves = ((part * (2 * width) as f64).round() as usize).clamp(1, (2 * width).max(1));
    "█".repeat(halves / 2) + if halves % 2 == 1 { "▌" } else { "" }
}

/// A remark about ratios that vary much, or that come from few rounds.
fn doubt(ratios: &[Summary]) -> Option<String> {
    let count = ratios.iter().map(|ratio| ratio.count).min()?;
    if count < FEWEST_ROUNDS {
        return Some(format!(
            "Only {} fitted into the time: repeat this on an idle machine, or without --quick.",
            rounds(count)
        ));
    }
    let worst = ratios.iter().max_by(|a, b| a.spread_percent().total_cmp(&b.spread_percent()))?;
    (worst.spread_percent() > MOST_SPREAD_PERCENT).then(|| {
        format!(
            "The machine was unsteady: a ratio of the last sentence was between {:.2} and {:.2}. Repeat this on an \
            idle machine.",
            worst.low, worst.high
        )
    })
}

/// A number of rounds in words.
pub(crate) fn rounds(count: usize) -> String {
    if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") }
}

/// Breaks a text into lines of at most [`WIDTH`] columns, with a line end after each. A longer word has a line
/// of its own.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += width;
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(median: f64, spread: f64, count: usize) -> Summary {
        Summary { median, low: median * (1.0 - spread), high: median * (1.0 + spread), count }
    }

    fn row(name: &str, median: f64) -> Row {
        let ratio = Some(summary(median / 1_234_567.0, 0.1, 5));
        Row {
            name: name.to_owned(),
            value: Some((summary(median, 0.5, 5), spandrel_measure::units::grouped(median))),
            ratio,
        }
    }

    #[test]
    fn the_longest_row_fits() {
        let absent = Row { name: "omniorb".to_owned(), value: None, ratio: None };
        let rows = vec![row("c", 1_234_567.0), row("orb-interpretive", 1_000.0), absent];
        let text = Section { heading: "octets".to_owned(), unit: "Mbit/s", base: "c".to_owned(), rows }.text();
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths[3], WIDTH, "the bar of the highest value is whole:\n{text}");
        assert!(widths.iter().all(|width| *width <= WIDTH), "{text}");
        assert!(text.lines().nth(4).unwrap().ends_with('▌'), "a low value has a bar:\n{text}");
        assert!(!text.contains("omniorb"), "{text}");
    }

    #[test]
    fn a_wide_ratio_makes_the_bars_shorter() {
        let rows = vec![row("c", 1000.0), Row { ratio: Some(summary(12_345.6, 0.9, 3)), ..row("shm", 1_234_567.0) }];
        let text = Section { heading: "octets".to_owned(), unit: "Mbit/s", base: "c".to_owned(), rows }.text();
        assert!(text.contains("12345.60 (1234.56 to 23456.64)"), "{text}");
        assert_eq!(text.lines().map(|line| line.chars().count()).max(), Some(WIDTH), "{text}");
    }

    #[test]
    fn a_text_is_broken_between_words() {
        let text = "word ".repeat(50) + &"x".repeat(120);
        let wrapped = wrapped(&text);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines[0].len(), 99);
        assert_eq!(lines.last().unwrap().len(), 120);
        assert_eq!(wrapped.split_whitespace().count(), 51);
    }

    #[test]
    fn unsteady_and_few_rounds_are_doubted() {
        assert_eq!(doubt(&[]), None);
        assert_eq!(doubt(&[summary(1.0, 0.05, 5)]), None);
        assert!(doubt(&[summary(1.0, 0.05, 5), summary(0.8, 0.5, 5)]).unwrap().contains("between 0.40 and 1.20"));
        assert!(doubt(&[summary(1.0, 0.05, 1)]).unwrap().contains("Only 1 round "));
    }
}
