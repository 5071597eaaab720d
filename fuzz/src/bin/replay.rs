//! `replay TARGET CHANGES FOLDER...`: runs a target on each file of the folders, and on `CHANGES` mutated copies of each.
//!
//! The mutations depend only on the file's octets, not on the clock or on other files: the same code gives
//! the same result on each machine.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

use spandrel_fuzz::TARGETS;

/// Longer inputs are truncated.
const MAX_LEN: usize = 1 << 16;

/// Boundary values of lengths, offsets, tags and enumerators.
const NUMBERS: [u32; 12] =
    [0, 1, 2, 4, 8, 0x7fff_ff02, 0x7fff_ff0a, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_fffe, 0xffff_ffff];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (target, copies, folders) = match arguments.as_slice() {
        [target, copies, folders @ ..] => (target, copies.parse::<u64>(), folders),
        _ => return usage(),
    };
    let Some((_, run)) = TARGETS.iter().find(|(name, _)| name == target) else { return usage() };
    let Ok(copies) = copies else { return usage() };
    let files = read(folders);
    let mut runs = 0_u64;
    for file in &files {
        for nth in 0..=copies {
            let input = if nth == 0 { file.clone() } else { mutated(file, nth) };
            runs += 1;
            if panic::catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
                return report_failure(target, &input);
            }
        }
    }
    println!("{target}: {runs} inputs from {} files", files.len());
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: replay TARGET CHANGES FOLDER...");
    ExitCode::FAILURE
}

/// The distinct contents of all files, sorted, and an empty input.
fn read(folders: &[String]) -> BTreeSet<Vec<u8>> {
    let mut files = BTreeSet::from([Vec::new()]);
    for folder in folders {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("cannot read {folder}: {error}"));
        for entry in entries {
            let path = entry.expect("the folder can be listed").path();
            files.insert(fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display())));
        }
    }
    files
}

fn report_failure(target: &str, input: &[u8]) -> ExitCode {
    let path = Path::new("artifacts").join(format!("{target}-{:016x}", hash(input)));
    let written = fs::create_dir_all("artifacts").and_then(|()| fs::write(&path, input));
    match written {
        Ok(()) => eprintln!("{target} fails; its input is in fuzz/{}", path.display()),
        Err(error) => eprintln!("{target} fails; cannot write {}: {error}", path.display()),
    }
    eprintln!("{input:02x?}");
    ExitCode::FAILURE
}

/// FNV-1a.
fn hash(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3))
}

/// A random number generator (SplitMix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, or 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).expect("the number is below a usize")
    }

    fn octet(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// A copy of the file with one to eight mutations.
fn mutated(file: &[u8], nth: u64) -> Vec<u8> {
    let mut rng = Rng(hash(file) ^ nth);
    let mut input = file.to_vec();
    for _ in 0..=rng.below(8) {
        mutate(&mut input, &mut rng);
    }
    input.truncate(MAX_LEN);
    input
}

fn mutate(input: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.below(input.len());
    // A part of up to 16 octets.
    let end = (at + 1 + rng.below(16)).min(input.len());
    match rng.below(8) {
        0 if at < input.len() => input[at] = rng.octet(),
        1 if at < input.len() => input[at] ^= 1 << rng.below(8),
        2 if at < input.len() => input[at] = input[at].wrapping_add(if rng.octet() & 1 == 0 { 1 } else { 0xff }),
        3 if input.len() >= 4 => {
            let number = match NUMBERS.get(rng.below(NUMBERS.len() + 1)) {
                Some(number) => *number,
                None => u32::try_from(input.len()).unwrap_or(u32::MAX),
            };
            let octets = if rng.octet() & 1 == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
            let at = at.min(input.len() - 4);
            input[at..at + 4].copy_from_slice(&octets);
        }
        4 => drop(input.drain(at..end)),
        5 => {
            let part = input[at..end].to_vec();
            let to = rng.below(input.len() + 1);
            input.splice(to..to, part);
        }
        6 => input.truncate(at),
        _ => {
            let part: Vec<u8> = (0..=rng.below(8)).map(|_| rng.octet()).collect();
            input.splice(at..at, part);
        }
    }
}
