//! Agreement with libtirpc, in the program of `peers/xdr`.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use proptest::prelude::*;

use super::sample::{Sample, samples};
use crate::{Decode, Padding, Settings, XdrDecoder, XdrError, decode, encode};

/// The first residual octet of a sample: that of `fixed`, behind 60 octets of numbers and five of its own.
const RESIDUAL: usize = 65;

/// The running peer program, which decodes and encodes samples.
struct Peer {
    program: Child,
    input: ChildStdin,
    output: ChildStdout,
}

/// One program for all cases: it ends when its standard input does.
static PEER: LazyLock<Mutex<Peer>> = LazyLock::new(|| Mutex::new(Peer::start()));

impl Peer {
    fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let test = std::env::current_exe().expect("this program has a path");
        let out = test.ancestors().nth(3).expect("it is in a folder of the build").join("peers");
        let mut make = Command::new("make");
        make.args(["--silent", "-C"]).arg(root.join("peers/xdr")).arg(format!("OUT={}", out.display()));
        let made = make.status().expect("make can be run (package make)");
        assert!(made.success(), "peers/xdr cannot be built (packages gcc, pkg-config, libtirpc-dev)");
        let mut program = Command::new(out.join("xdr-peer"));
        let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
        let (input, output) = (program.stdin.take().expect("piped"), program.stdout.take().expect("piped"));
        Self { program, input, output }
    }

    /// The octets and the text of its value; nothing if the octets of the command do not decode.
    fn call(&mut self, command: u32, word: u32, octets: &[u8]) -> Option<(Vec<u8>, String)> {
        let request = [&command.to_be_bytes(), &word.to_be_bytes(), octets].concat();
        let sent = self.input.write_all(&request).and_then(|()| self.input.flush());
        sent.unwrap_or_else(|error| panic!("the program has ended: {error}, {:?}", self.program.try_wait()));
        (self.word() == 1).then(|| {
            let octets = self.counted();
            (octets, String::from_utf8(self.counted()).expect("text"))
        })
    }

    fn word(&mut self) -> u32 {
        let mut word = [0; 4];
        self.output.read_exact(&mut word).expect("the program answers");
        u32::from_be_bytes(word)
    }

    fn counted(&mut self) -> Vec<u8> {
        let mut octets = vec![0; self.word() as usize];
        self.output.read_exact(&mut octets).expect("the program answers");
        octets
    }
}

fn call(command: u32, word: u32, octets: &[u8]) -> Option<(Vec<u8>, String)> {
    PEER.lock().unwrap_or_else(PoisonError::into_inner).call(command, word, octets)
}

fn reencoded_by_the_peer(octets: &[u8]) -> Option<(Vec<u8>, String)> {
    call(0, u32::try_from(octets.len()).expect("it is short"), octets)
}

#[test]
fn the_peer_refuses_octets_that_are_no_value() {
    assert_eq!(reencoded_by_the_peer(&[0; 8]), None);
}

proptest! {
    /// The reason for [`Padding::Any`].
    #[test]
    fn the_peer_ignores_residual_octets(sample in samples(), residual in 1_u8..) {
        let octets = encode(&sample).unwrap();
        let mut changed = octets.clone();
        changed[RESIDUAL] = residual;
        let (theirs, text) = reencoded_by_the_peer(&changed).expect("they decode there");
        prop_assert_eq!(&theirs, &octets);
        prop_assert_eq!(text, sample.describe());
        prop_assert_eq!(decode::<Sample>(&changed).unwrap_err(), XdrError::Padding);
        let settings = Settings { padding: Padding::Any, ..Settings::DEFAULT };
        prop_assert_eq!(Sample::decode(&mut XdrDecoder::with_settings(&changed, settings)).unwrap(), sample);
    }

    #[test]
    fn our_values_are_the_same_values_there(sample in samples()) {
        let octets = encode(&sample).unwrap();
        let (theirs, text) = reencoded_by_the_peer(&octets).expect("our octets decode there");
        prop_assert_eq!(theirs, octets);
        prop_assert_eq!(text, sample.describe());
    }

    #[test]
    fn their_values_are_the_same_values_here(seed in any::<u32>()) {
        let (octets, text) = call(1, seed, &[]).expect("it makes a value");
        let sample = decode::<Sample>(&octets).unwrap();
        prop_assert_eq!(sample.describe(), text);
        prop_assert_eq!(encode(&sample).unwrap(), octets);
    }

    /// Octets that both accept are the same value. Ours refuses more: residual octets, bools, text that is not
    /// UTF-8.
    #[test]
    fn changed_octets_that_decode_here_decode_there(
        sample in samples(),
        at in any::<prop::sample::Index>(),
        octet in any::<u8>(),
    ) {
        let mut octets = encode(&sample).unwrap();
        let at = at.index(octets.len());
        octets[at] = octet;
        // A string in C ends at the first zero, and its float may lose the kind of a NaN.
        let is_comparable = |sample: &Sample| !sample.has_zero_or_nan();
        if let Some(changed) = decode::<Sample>(&octets).ok().filter(is_comparable) {
            let (theirs, text) = reencoded_by_the_peer(&octets).expect("they decode there");
            prop_assert_eq!(theirs, octets);
            prop_assert_eq!(text, changed.describe());
        }
    }
}
