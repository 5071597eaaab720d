//! The comparison of two folders of results.

use spandrel_measure::stats::{Comparison, Moments};
use spandrel_measure::table;

use crate::folder::Folder;
use crate::series::{Series, Unit};

/// The least relative difference that a verdict is given on.
pub const LEAST_DIFFERENCE: f64 = 0.03;
/// The chance that any of the verdicts is wrong where nothing differs.
const TAIL: f64 = 0.05;

/// The judgement of a difference between two folders, by its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first folder's value is better.
    Better,
    /// The first folder's value is worse.
    Worse,
    /// They do not differ by 3 %, or the interval includes zero.
    NoDifference,
    /// A sample with one value shows no variance.
    TooFewRounds,
}

impl Verdict {
    /// The verdict on the first folder in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifference => "no difference",
            Self::TooFewRounds => "too few rounds",
        }
    }
}

/// Two series of the same point and name.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSeries {
    /// The point that both folders have measured.
    pub point: String,
    /// The contender and the quantity that both folders have measured.
    pub series: String,
    /// The unit in which both series are.
    pub unit: Unit,
    /// The means of the first and of the second folder.
    pub means: (f64, f64),
    /// The difference of the first mean relative to the second.
    pub relative: f64,
    /// The ends of the corrected confidence interval of the relative difference.
    pub interval: (f64, f64),
    /// The judgement on the first folder.
    pub verdict: Verdict,
}

/// The series of two folders, side by side.
#[derive(Clone, Debug)]
pub struct FolderComparison {
    /// The series that both have.
    pub rows: Vec<ComparedSeries>,
    /// Points that one folder lacks, or that were measured in another form.
    pub left_out: Vec<String>,
}

/// Compares all series that both folders have. The confidence intervals are corrected for their number.
#[must_use]
pub fn compare(first: &Folder, second: &Folder) -> FolderComparison {
    let (mut pairs, mut left_out) = (Vec::new(), Vec::new());
    for result in first.results() {
        let name = result.point.to_string();
        match second.result(&result.point) {
            Some(other) if other.form == result.form => {
                for series in &result.series {
                    let same = other.series.iter().find(|one| one.name == series.name && one.unit == series.unit);
                    pairs.extend(same.map(|same| (name.clone(), series, same)));
                }
            }
            Some(_) => left_out.push(format!("{name}: measured in two forms")),
            None => left_out.push(format!("{name}: only in {}", first.path().display())),
        }
    }
    let only_second = second.results().filter(|result| first.result(&result.point).is_none());
    left_out.extend(only_second.map(|result| format!("{}: only in {}", result.point, second.path().display())));
    let tail = TAIL / pairs.len().max(1) as f64;
    let rows = pairs.into_iter().filter_map(|(point, first, second)| judge(point, first, second, tail)).collect();
    FolderComparison { rows, left_out }
}

/// The judgement on the first of two series; none if one of them has no values. Beyond the interval lies the share `tail`.
pub(crate) fn judge(point: String, first: &Series, second: &Series, tail: f64) -> Option<ComparedSeries> {
    let moments = |series: &Series| Moments::from_values(series.values.iter().copied());
    let (one, other) = (moments(first)?, moments(second)?);
    let is_counted = matches!(first.unit, Unit::Octets | Unit::Count);
    let relative = if other.mean == one.mean { 0.0 } else { one.mean / other.mean - 1.0 };
    let interval = match Comparison::with_tail(&one, &other, tail) {
        Some(comparison) => comparison.interval,
        // Without any variance the difference is exact.
        None => (relative, relative),
    };
    let is_alone = one.count.min(other.count) < 2 && !is_counted;
    let verdict = if is_alone || relative.is_nan() {
        Verdict::TooFewRounds
    } else if relative.abs() < LEAST_DIFFERENCE || (interval.0 <= 0.0 && interval.1 >= 0.0) {
        Verdict::NoDifference
    } else if (relative > 0.0) == first.unit.is_rate() {
        Verdict::Better
    } else {
        Verdict::Worse
    };
    let (series, unit, means) = (first.name.clone(), first.unit, (one.mean, other.mean));
    Some(ComparedSeries { point, series, unit, means, relative, interval, verdict })
}

impl FolderComparison {
    /// The number of series with this verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// A table of the differences, or of all series, and a summary.
    #[must_use]
    pub fn text(&self, with_all: bool) -> String {
        let header = ["point", "series", "first", "second", "difference", "interval", "first is"];
        let mut table = table::with_header(header.map(str::to_owned).to_vec());
        let percent = |value: f64| format!("{:+.1} %", value * 100.0);
        let differs = |row: &&ComparedSeries| matches!(row.verdict, Verdict::Better | Verdict::Worse);
        let mut shown = 0;
        for row in self.rows.iter().filter(|row| with_all || differs(row)) {
            shown += 1;
            table.add_row([
                row.point.clone(),
                row.series.clone(),
                format!("{:.4} {}", row.means.0, row.unit.symbol()),
                format!("{:.4} {}", row.means.1, row.unit.symbol()),
                percent(row.relative),
                format!("{} to {}", percent(row.interval.0), percent(row.interval.1)),
                row.verdict.name().to_owned(),
            ]);
        }
        let mut text = if shown > 0 { format!("{table}\n\n") } else { String::new() };
        text += &format!(
            "{} series compared: {} better, {} worse, {} without a difference, {} with too few rounds.\n\
             Intervals are corrected for {} comparisons (95 % for all together); no verdict below {:.0} %.\n",
            self.rows.len(),
            self.count(Verdict::Better),
            self.count(Verdict::Worse),
            self.count(Verdict::NoDifference),
            self.count(Verdict::TooFewRounds),
            self.rows.len(),
            LEAST_DIFFERENCE * 100.0
        );
        for point in &self.left_out {
            text += &format!("not compared: {point}\n");
        }
        text
    }
}
