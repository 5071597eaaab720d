//! `replay TARGET CHANGES FOLDER...`: runs a target on each file of the folders, and on so many changed copies of each.
//!
//! What is changed depends on a file's octets alone, and nothing on the clock or on which other files there are: the same
//! code gives the same answer on every machine.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

use spandrel_fuzz::TARGETS;

/// Longer inputs are cut off.
const MAX_LEN: usize = 1 << 16;

/// Numbers that lengths, offsets, tags and enumerators have at the edges of what is valid.
const NUMBERS: [u32; 12] =
    [0, 1, 2, 4, 8, 0x7fff_ff02, 0x7fff_ff0a, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_fffe, 0xffff_ffff];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (target, changes, folders) = match arguments.as_slice() {
        [target, changes, folders @ ..] => (target, changes.parse::<u64>(), folders),
        _ => return usage(),
    };
    let Some((_, run)) = TARGETS.iter().find(|(name, _)| name == target) else { return usage() };
    let Ok(changes) = changes else { return usage() };
    let files = read(folders);
    let mut runs = 0_u64;
    for file in &files {
        for nth in 0..=changes {
            let input = if nth == 0 { file.clone() } else { changed(file, nth) };
            runs += 1;
            if panic::catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
                return found(target, &input);
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

/// The contents of all files, each once, in the order of the contents; and an empty one.
fn read(folders: &[String]) -> BTreeSet<Vec<u8>> {
    let mut files = BTreeSet::from([Vec::new()]);
    for folder in folders {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("cannot read {folder}: {error}"));
        for entry in entries {
            let path = entry.expect("a folder can be listed").path();
            files.insert(fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display())));
        }
    }
    files
}

fn found(target: &str, input: &[u8]) -> ExitCode {
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

/// Numbers that are drawn from a seed: SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, or 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).expect("below a usize")
    }

    fn octet(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// The file, changed in one to eight places.
fn changed(file: &[u8], nth: u64) -> Vec<u8> {
    let mut draw = Draw(hash(file) ^ nth);
    let mut input = file.to_vec();
    for _ in 0..=draw.below(8) {
        change(&mut input, &mut draw);
    }
    input.truncate(MAX_LEN);
    input
}

fn change(input: &mut Vec<u8>, draw: &mut Draw) {
    let at = draw.below(input.len());
    // A part of up to 16 octets.
    let end = (at + 1 + draw.below(16)).min(input.len());
    match draw.below(8) {
        0 if at < input.len() => input[at] = draw.octet(),
        1 if at < input.len() => input[at] ^= 1 << draw.below(8),
        2 if at < input.len() => input[at] = input[at].wrapping_add(if draw.octet() & 1 == 0 { 1 } else { 0xff }),
        3 if input.len() >= 4 => {
            let number = match NUMBERS.get(draw.below(NUMBERS.len() + 1)) {
                Some(number) => *number,
                None => u32::try_from(input.len()).unwrap_or(u32::MAX),
            };
            let octets = if draw.octet() & 1 == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
            let at = at.min(input.len() - 4);
            input[at..at + 4].copy_from_slice(&octets);
        }
        4 => drop(input.drain(at..end)),
        5 => {
            let part = input[at..end].to_vec();
            let to = draw.below(input.len() + 1);
            input.splice(to..to, part);
        }
        6 => input.truncate(at),
        _ => {
            let part: Vec<u8> = (0..=draw.below(8)).map(|_| draw.octet()).collect();
            input.splice(at..at, part);
        }
    }
}
