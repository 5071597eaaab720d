//! Queries on many offers: `cargo bench -p spandrel-trading [OFFERS]` (1,000,000 offers of 1,000 service types).
//!
//! 1,000 distinct queries for each number of matches, called through the reference in the process of the trader. The
//! exponent is that of the median time against the number of matches.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, Result};
use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
use spandrel::services::cos_trading::{Lookup, Property};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::types::Any;
use spandrel::{Endpoint, Orb};
use spandrel_trading::{TradingOptions, TradingService};

const TYPES: u32 = 1_000;
const QUERIES: u32 = 1_000;

fn property(name: &str, value: Any) -> Property {
    Property { name: name.to_owned(), value }
}

/// The resident memory of the process, in octets.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1_024)
}

fn main() -> Result<()> {
    let offers = std::env::args().skip(1).find_map(|word| word.parse::<u32>().ok()).unwrap_or(1_000_000);
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
    let time = start.elapsed();
    println!("{offers} exports: {:.1} us each", time.as_secs_f64() * 1e6 / f64::from(offers));
    println!("memory: {} octets for each offer", (resident()? - before) / u64::from(offers));
    let nothing = SpecifiedProps::Unlisted(HowManyProps::None);
    let mut points = Vec::new();
    for matches in [1, 10, 100, 1_000] {
        for preference in ["first", "min load"] {
            let mut times = Vec::new();
            for nth in 0..QUERIES {
                let low = (nth * 977) % (offers - matches);
                let constraint = format!("serial >= {low} and serial < {}", low + matches);
                let start = Instant::now();
                let (result, _, limits) = lookup.query("Device", &constraint, preference, &[], &nothing, u32::MAX)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
                assert!(limits.is_empty() && black_box(result).len() == matches as usize, "{constraint}");
            }
            times.sort_by(f64::total_cmp);
            let [p50, p99] = [50, 99].map(|percent| times[times.len() * percent / 100]);
            println!("{matches} matches, {preference}: p50 {p50:.3} ms, p99 {p99:.3} ms");
            if preference == "first" {
                points.push((f64::from(matches).ln(), p50.ln()));
            }
        }
    }
    println!("exponent of time against matches: {:.2}", slope(&points));
    service.stop()?;
    orb.shutdown()?;
    Ok(())
}

/// The slope of the line through points by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    covariance / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}
