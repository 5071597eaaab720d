//! Long messages, and concurrent ones.

use std::error::Error;
use std::thread;

use anyhow::Result;

use crate::idl::*;
use crate::patterns::Pattern;
use crate::suite::Suite;
use crate::values::{Value, same};

/// Sizes from 0, around the 8 KiB where omniORB starts to send fragments, and far above it.
const OCTETS: [u32; 13] = [0, 1, 1000, 8100, 8150, 8176, 8191, 8192, 8193, 16384, 65536, 300_001, 1_000_000];

pub(super) fn run(suite: &mut Suite<'_>, target: &Bulk) {
    suite.case("bulk/octets", || sizes(1, |seed, data: &Vec<u8>, answer| target.octets(seed, data, answer)));
    suite.case("bulk/doubles", || sizes(8, |seed, data: &Vec<f64>, answer| target.doubles(seed, data, answer)));
    suite.case("bulk/structs", || sizes(24, |seed, data: &Vec<BinStruct>, answer| target.structs(seed, data, answer)));
    suite.case("bulk/strings", || sizes(16, |seed, data: &Vec<String>, answer| target.strings(seed, data, answer)));
    suite.case("bulk/text", || {
        for (seed, out) in (1..).zip(OCTETS) {
            let answer = OCTETS[(seed - 1) as usize % OCTETS.len()];
            carry(seed, out, answer, |seed, data: &String, answer| target.text(seed, data, answer))?;
        }
        Ok(())
    });
    suite.case("bulk/threads", || {
        let one = |t: u32| {
            (0..50).map(|i| t * 100 + i).try_for_each(|seed| {
                let n = seed.wrapping_mul(7919) % 20000;
                carry(seed, n, n / 2, |seed, data: &Vec<f64>, answer| target.doubles(seed, data, answer))
            })
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|t| scope.spawn(move || one(t))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("the thread reports failures by its result"))
        })
    });
}

/// Calls with three reply sizes for each request size; `unit` is the approximate size of an element.
fn sizes<T: Pattern + Value, E: Error + Send + Sync + 'static>(
    unit: u32,
    call: impl Fn(u32, &T, u32) -> Result<T, E>,
) -> Result<()> {
    let mut seed = 0;
    for out in OCTETS {
        for answer in [OCTETS[seed as usize % OCTETS.len()], 0, 40000] {
            seed += 1;
            carry(seed, out / unit, answer / unit, &call)?;
        }
    }
    Ok(())
}

fn carry<T: Pattern + Value, E: Error + Send + Sync + 'static>(
    seed: u32,
    len: u32,
    answer: u32,
    call: impl Fn(u32, &T, u32) -> Result<T, E>,
) -> Result<()> {
    let came = call(seed, &T::pattern(seed, len as usize), answer)?;
    same("answer", &came, &T::pattern(seed + 1, answer as usize)).map_err(anyhow::Error::msg)
}
