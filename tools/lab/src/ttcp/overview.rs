//! The short report of a quick series.

use spandrel_measure::stats::Summary;
use spandrel_measure::units::{Octets, grouped};

use super::results::Results;
use crate::latency;
use crate::mechanism::MechanismName;
use crate::overview::{Page, Row, Section, rounds};
use crate::workload::{CallKind, DataType, PingCase};

/// The report of the throughput and, if they were measured, of single calls. `files` says where the full
/// report is. The last line says what was found.
#[must_use]
pub fn text(results: &Results, calls: Option<&latency::Results>, files: &str) -> String {
    let settings = &results.settings;
    let mut sections = Vec::new();
    for call in &settings.calls {
        for data in &settings.types {
            sections.extend(settings.sizes.iter().map(|size| section(results, *call, *data, *size)));
        }
    }
    sections.extend(calls.iter().flat_map(|calls| latency::overview::sections(calls)));
    let subject = subject(&settings.mechanisms);
    let of_subject = results.cells.iter().filter(|cell| Some(cell.mechanism) == subject);
    let of_calls = calls.and_then(|calls| call_ratio(calls, subject?));
    Page {
        machine: &results.machine,
        introduction: format!(
            "Two processes, {}. Each run moves {} of user data; medians of {} in which the mechanisms take turns. \
            ±: half the range of the rounds. Ratios are formed within a round, and their range follows.",
            settings.placement.description(),
            settings.bytes,
            rounds(results.rounds()),
        ),
        sections,
        legend: settings.mechanisms.iter().map(|name| (name.name(), name.description())).collect(),
        ratios: of_subject.filter_map(|cell| cell.ratio).chain(of_calls).collect(),
        files,
        conclusion: conclusion(results, calls),
    }
    .text()
}

fn section(results: &Results, call: CallKind, data: DataType, size: Octets) -> Section {
    let row = |mechanism: &MechanismName| {
        let cell = results.cell(call, data, size.0 as usize, *mechanism);
        Row {
            name: mechanism.to_string(),
            value: cell.map(|cell| (cell.mbps, grouped(cell.mbps.median))),
            ratio: cell.and_then(|cell| cell.ratio),
        }
    };
    let kind = match call {
        CallKind::OneWay => "one-way",
        CallKind::TwoWay => "two-way",
    };
    Section {
        heading: format!("Throughput of {kind} {} in buffers of {size}: longer bars are better", data.plural()),
        unit: "Mbit/s",
        base: results.base().to_string(),
        rows: results.settings.mechanisms.iter().map(row).collect(),
    }
}

/// The mechanism that the conclusion is about: the ORB, or else the first one that is not the base.
fn subject(mechanisms: &[MechanismName]) -> Option<MechanismName> {
    let base = MechanismName::base(mechanisms);
    let others = || mechanisms.iter().copied().filter(|mechanism| *mechanism != base);
    others().find(|mechanism| *mechanism == MechanismName::Orb).or_else(|| others().next())
}

/// The ratio of the subject's time of a call without parameters, in the first placement.
fn call_ratio(calls: &latency::Results, subject: MechanismName) -> Option<Summary> {
    let subject = latency::Contender::Mechanism(subject);
    calls.rows.iter().find(|row| row.contender == subject && row.case == PingCase::Void)?.ratio
}

/// The sentence that says what was found, with the largest buffers of the first kind of call.
fn conclusion(results: &Results, calls: Option<&latency::Results>) -> String {
    let settings = &results.settings;
    let (Some(call), Some(size)) = (settings.calls.first(), settings.sizes.iter().max()) else { return String::new() };
    let cell = |data: &DataType, mechanism| results.cell(*call, *data, size.0 as usize, mechanism);
    let Some(subject) = subject(&settings.mechanisms) else {
        let base = results.base();
        let rate =
            |data: &DataType| Some(format!("{} at {} Mbit/s", data.plural(), grouped(cell(data, base)?.mbps.median)));
        let rates: Vec<String> = settings.types.iter().filter_map(rate).collect();
        return format!("{base} moves {}; there is nothing to compare it with.", rates.join(", "));
    };
    let named = |mechanism: MechanismName| match mechanism {
        MechanismName::C => "plain sockets".to_owned(),
        MechanismName::Orb => "the ORB".to_owned(),
        other => other.to_string(),
    };
    let ratios = settings.types.iter().filter_map(|data| Some((data, cell(data, subject)?.ratio?.median)));
    let mut sentence = String::new();
    for (number, (data, ratio)) in ratios.enumerate() {
        sentence += &match number {
            0 => {
                let base = named(results.base());
                format!("{} moves {} at {ratio:.2} of {base}", named(subject), data.plural())
            }
            _ => format!(", {} at {ratio:.2}", data.plural()),
        };
    }
    if let Some(ratio) = calls.and_then(|calls| call_ratio(calls, subject)) {
        sentence += &format!("; a call takes {:.2} of a raw ping", ratio.median);
    }
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).chain(['.']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Contender;
    use crate::overview::WIDTH;
    use crate::ttcp::report::tests::results;

    #[test]
    fn a_quick_report_has_a_bar_for_each_mechanism_and_ends_with_its_meaning() {
        let text = text(&results(), Some(&latency::report::tests::results()), "Full report: report.txt");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn without_calls_the_conclusion_is_about_throughput_alone() {
        let text = text(&results(), None, "");
        assert!(text.ends_with("The ORB moves octets at 0.60 of plain sockets, structs at 0.60.\n"), "{text}");
    }

    #[test]
    fn a_base_alone_is_compared_with_nothing() {
        let mut results = results();
        results.settings.mechanisms = vec![MechanismName::C];
        let text = text(&results, None, "");
        assert!(text.contains("c moves octets at 47,186 Mbit/s, structs at 47,186 Mbit/s; there is nothing"), "{text}");
        assert_eq!(Contender::base(&[]), Contender::BASE);
    }
}
