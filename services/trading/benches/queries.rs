//! Exports and queries by the number of offers: `cargo bench -p spandrel-trading [OFFERS…]` (10 to 1,000,000 offers of 1,000
//! service types), as rows of a table.
//!
//! 1,000 distinct queries for each number of matches, called through the reference in the process of the trader. The
//! exponent is that of the median time against the number of matches. Each number of offers has a process of its own.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
use spandrel::services::cos_trading::{Lookup, Property};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::types::Any;
use spandrel::{Endpoint, Orb};
use spandrel_trading::{TradingOptions, TradingService};

const TYPES: u32 = 1_000;
const QUERIES: u32 = 1_000;
const MATCHES: [u32; 4] = [1, 10, 100, 1_000];

fn property(name: &str, value: Any) -> Property {
    Property { name: name.to_owned(), value }
}

/// The resident memory of the process, in octets.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1_024)
}

/// The numbers of offers without arguments.
const OFFERS: [u32; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// With fewer offers, the memory of an offer is less than what the process varies by.
const WITH_MEMORY: u32 = 10_000;

/// The argument of the process of one row.
const ROW: &str = "row";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if words.iter().any(|word| word == ROW) {
        return numbers.iter().try_for_each(|offers| measure(*offers));
    }
    println!(
        "| offers | export | memory | preference | 1 match | 10 matches | 100 matches | 1,000 matches | exponent |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for offers in if numbers.is_empty() { OFFERS.to_vec() } else { numbers } {
        let status = Command::new(std::env::current_exe()?).args([ROW, &offers.to_string()]).status()?;
        ensure!(status.success(), "{offers} offers: {status}");
    }
    Ok(())
}

/// Prints the rows of a number of offers: times are p50 and p99 in milliseconds.
fn measure(offers: u32) -> Result<()> {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
    let service = TradingService::start(&orb, TradingOptions::default())?;
    let lookup: Lookup = service.lookup().narrow()?;
    let register = lookup.register_if()?.context("a register")?;
    let types: ServiceTypeRepository = lookup.type_repos()?.context("a repository")?.narrow()?;
    types.add_type("Device", "", &[], &[])?;
    for nth in 0..TYPES {
        types.add_type(&format!("Device{nth}"), "", &[], &["Device".to_owned()])?;
    }
    let object = orb.string_to_object("corbaloc::device.example:2000/Device")?;
    let before = resident()?;
    let start = Instant::now();
    for nth in 0..offers {
        let properties = [
            property("serial", Any::new(nth)?),
            // Scattered over the types.
            property("load", Any::new(f64::from(nth.wrapping_mul(2_654_435_761) % offers))?),
            property("site", Any::new(format!("site{}", nth % 10_000))?),
        ];
        register.export(Some(&object), &format!("Device{}", nth % TYPES), &properties)?;
    }
    let export = start.elapsed().as_secs_f64() * 1e6 / f64::from(offers);
    let memory = match offers >= WITH_MEMORY {
        true => format!("{} octets", (resident()? - before) / u64::from(offers)),
        false => String::new(),
    };
    for preference in ["first", "min load"] {
        let (mut cells, mut points) = (Vec::new(), Vec::new());
        for matches in MATCHES {
            if matches > offers {
                cells.push(String::new());
                continue;
            }
            let [p50, p99] = times(&lookup, offers, matches, preference)?;
            cells.push(format!("{p50:.3} / {p99:.3}"));
            points.push((f64::from(matches).ln(), p50.ln()));
        }
        let exponent = slope(&points);
        println!("| {offers} | {export:.1} µs | {memory} | `{preference}` | {} | {exponent:.2} |", cells.join(" | "));
    }
    service.stop()?;
    orb.shutdown()?;
    Ok(())
}

/// The median and the 99th percentile of distinct queries, in milliseconds.
fn times(lookup: &Lookup, offers: u32, matches: u32, preference: &str) -> Result<[f64; 2]> {
    let nothing = SpecifiedProps::Unlisted(HowManyProps::None);
    let ranges = offers - matches + 1;
    let mut times = Vec::new();
    for nth in 0..QUERIES {
        let low = (nth * 977) % ranges;
        let mut constraint = format!("serial >= {low} and serial < {}", low + matches);
        if ranges < QUERIES {
            constraint += &format!(" and load > -{nth}.5"); // always true, so that queries are distinct
        }
        let start = Instant::now();
        let (result, _, limits) = lookup.query("Device", &constraint, preference, &[], &nothing, u32::MAX)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        assert!(limits.is_empty() && black_box(result).len() == matches as usize, "{constraint}");
    }
    times.sort_by(f64::total_cmp);
    Ok([50, 99].map(|percent| times[times.len() * percent / 100]))
}

/// The slope of the line through points by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    covariance / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}
