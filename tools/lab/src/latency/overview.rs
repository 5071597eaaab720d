//! The short report of a quick series.

use spandrel_measure::units::grouped;

use super::contender::Contender;
use super::results::{Results, Row};
use crate::mechanism::MechanismName;
use crate::overview::{self, Page, Section, rounds};
use crate::placement::Placement;
use crate::workload::PingCase;

/// The report; `files` says where the full one is. The last line says what was found.
#[must_use]
pub fn text(results: &Results, files: &str) -> String {
    let settings = &results.settings;
    let count = results.rows.iter().filter_map(|row| row.median_us).map(|median| median.count).min().unwrap_or(0);
    let subject = subject(&settings.contenders);
    Page {
        machine: &results.machine,
        introduction: format!(
            "Median times of {} calls per round, each timed; medians of {} in which the mechanisms take turns. \
            ±: half the range of the rounds. Ratios are formed within a round, and their range follows.",
            grouped(f64::from(settings.calls)),
            rounds(count),
        ),
        sections: sections(results),
        legend: present(results).into_iter().map(|one| (one.name(), one.description())).collect(),
        ratios: results.rows.iter().filter(|row| Some(row.contender) == subject).filter_map(|row| row.ratio).collect(),
        files,
        conclusion: conclusion(results),
    }
    .text()
}

/// A section for each placement and case.
pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let base = Contender::base(&results.settings.contenders);
    let section = |placement: Placement, case: PingCase| {
        let rows = results.rows.iter().filter(|row| row.placement == placement && row.case == case);
        let rows: Vec<&Row> = rows.collect();
        let call = match case {
            PingCase::Void => "without parameters",
            PingCase::Structs => "with 1,024 structs",
        };
        Section {
            heading: format!("Time of a call {call}, {}: shorter bars are better", placement.description()),
            unit: "µs",
            base: base.to_string(),
            rows: rows.into_iter().map(shown).collect(),
        }
    };
    let settings = &results.settings;
    let of_placement =
        |placement: &Placement| settings.cases.iter().map(|case| section(*placement, *case)).collect::<Vec<_>>();
    settings.placements.iter().flat_map(of_placement).collect()
}

fn shown(row: &Row) -> overview::Row {
    overview::Row {
        name: row.contender.to_string(),
        value: row.median_us.map(|time| (time, format!("{:.2}", time.median))),
        ratio: row.ratio,
    }
}

/// The contenders with figures.
fn present(results: &Results) -> Vec<Contender> {
    let has_row =
        |contender: &Contender| results.rows.iter().any(|row| row.contender == *contender && row.median_us.is_some());
    results.settings.contenders.iter().copied().filter(has_row).collect()
}

/// The contender that the conclusion is about: the ORB, or else the first one that is not the base.
fn subject(contenders: &[Contender]) -> Option<Contender> {
    let base = Contender::base(contenders);
    let others = || contenders.iter().copied().filter(|contender| *contender != base);
    others().find(|contender| *contender == ORB).or_else(|| others().next())
}

const ORB: Contender = Contender::Mechanism(MechanismName::Orb);

/// The sentence that says what was found.
fn conclusion(results: &Results) -> String {
    let settings = &results.settings;
    let base = Contender::base(&settings.contenders);
    let Some(subject) = subject(&settings.contenders) else {
        return format!("There is nothing to compare {base} with.");
    };
    let ratios = |case: PingCase| {
        let row = |placement: &Placement| {
            let row = results
                .rows
                .iter()
                .find(|row| (row.placement, row.case, row.contender) == (*placement, case, subject))?;
            Some((*placement, row.ratio?.median))
        };
        settings.placements.iter().filter_map(row).collect::<Vec<_>>()
    };
    let mut parts = Vec::new();
    for case in &settings.cases {
        let ratios = ratios(*case);
        if ratios.is_empty() {
            continue;
        }
        let ratios: Vec<String> = ratios
            .iter()
            .map(|(placement, ratio)| format!("{ratio:.2} {}", place(*placement)).trim_end().to_owned())
            .collect();
        let call = match case {
            PingCase::Void => "without parameters",
            PingCase::Structs => "with 1,024 structs",
        };
        parts.push(format!("{call} {}", ratios.join(" and ")));
    }
    let subject = if subject == ORB { "the ORB".to_owned() } else { subject.to_string() };
    let base = if base == Contender::BASE { "raw sockets".to_owned() } else { base.to_string() };
    format!("The time of a call through {subject}, as a multiple of that of {base}: {}.", parts.join("; "))
}

fn place(placement: Placement) -> &'static str {
    match placement {
        Placement::One => "on one core",
        Placement::Two => "on two cores",
        Placement::Free => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::report::tests::results;
    use crate::overview::WIDTH;

    #[test]
    fn a_quick_report_has_a_bar_for_each_contender_and_ends_with_its_meaning() {
        let text = text(&results(), "Full report: report.txt");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        insta::assert_snapshot!(text);
    }
}
