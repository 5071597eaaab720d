//! All samples, and all versions, as comma-separated values (RFC 4180).

use crate::results::{Cpu, Results, Sample};

const SCOPES: [&str; 5] = ["process", "children", "tree", "group", "machine"];

/// A header, and a line for each sample. Figures that a sample lacks are empty.
pub(super) fn samples(results: &Results) -> String {
    let mut header: Vec<String> =
        ["server", "load", "sample", "at", "elapsed", "requests", "answered", "failed", "octets"]
            .map(str::to_owned)
            .into();
    header.extend(SCOPES.iter().flat_map(|scope| [format!("{scope}_user"), format!("{scope}_system")]));
    header.extend(
        ["resident", "peak_resident", "voluntary_switches", "involuntary_switches", "p50", "p99", "highest"]
            .map(str::to_owned),
    );
    let mut text = line(&header);
    results.samples.iter().for_each(|sample| text.push_str(&line(&cells(sample))));
    text
}

/// A header, and a line for each version of a tool, property of a machine and version of a command (table B.1).
pub(super) fn versions(results: &Results) -> String {
    let mut text = line(&["kind", "host", "name", "value"].map(str::to_owned));
    let mut add = |cells: [&str; 4]| text.push_str(&line(&cells.map(str::to_owned)));
    for (tool, versions) in &results.versions {
        versions.iter().for_each(|version| add(["tool", "", tool, version]));
    }
    for host in &results.hosts {
        host.properties.iter().for_each(|(name, value)| add([&host.role, &host.host, name, value]));
        host.versions.iter().for_each(|(command, version)| add(["command", &host.host, command, version]));
    }
    text
}

fn cells(sample: &Sample) -> Vec<String> {
    let mut cells = vec![sample.target.clone(), sample.load.clone(), (sample.round + 1).to_string()];
    cells.extend([format!("{:.3}", sample.at), sample.elapsed.to_string()]);
    cells.extend([sample.requests, sample.answered, sample.failed, sample.octets].map(|count| count.to_string()));
    for scope in SCOPES {
        let time = sample.cpu.get(scope);
        let part = |of: fn(&Cpu) -> f64| time.map(|time| of(time).to_string()).unwrap_or_default();
        cells.extend([part(|time| time.user), part(|time| time.system)]);
    }
    let counts = [sample.resident, sample.peak_resident, sample.voluntary_switches, sample.involuntary_switches];
    cells.extend(counts.map(|count| count.to_string()));
    cells.extend([sample.latency.p50, sample.latency.p99, sample.latency.highest].map(|time| time.to_string()));
    cells
}

fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}
