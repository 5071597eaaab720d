//! The executable: output and options.

use std::process::Command;

use spandrel_test_support::check_output_errors;

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-stacks"));
    command.args(words);
    command
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for words in
        [&["--help"][..], &["ttcp", "--messages", "8", "--rounds", "1", "--windows", "8192", "--applications", "1"]]
    {
        check_output_errors(|| command(words));
    }
}

#[test]
fn values_out_of_range_are_errors_of_usage_that_name_the_option() {
    for (words, expected) in [
        (&["--threads", "0"][..], "'--threads <N,..>': 0 is not in 1..=64"),
        (&["--threads", "1,x"], "'x' for '--threads <N,..>': expected a whole number"),
        (&["--rounds", "0"], "'--rounds <N>': 0 is not in 1..=1000"),
        (&["--connections", "0"], "'--connections <N>': 0 is not in 1..=256"),
        (&["--messages", "7"], "'--messages <N>': 7 is not in 8..=1000000"),
        (&["--size", "15"], "'--size <OCTETS>': 15 is not in 16..=60000"),
        (&["--segment", "63"], "'--segment <OCTETS>': 63 is not in 64..=60000"),
        (&["--loss", "51"], "'--loss <PERCENT>': 51 is not in 0..=50"),
        (&["--reordering", "101"], "'--reordering <PERCENT>': 101 is not in 0..=100"),
        (&["--segment", "4096", "--window", "4095"], "--window 4095 is less than --segment 4096"),
        (&["ttcp", "--rounds", "0"], "'--rounds <N>': 0 is not in 1..=1000"),
        (&["ttcp", "--link", "0"], "'--link <N>': 0 is not in 1..=1000000"),
        (&["ttcp", "--messages", "0"], "'--messages <N>': 0 is not in 1..=1000000"),
        (&["ttcp", "--threads", "0"], "'--threads <N>': 0 is not in 1..=64"),
        (&["ttcp", "--applications", "0"], "'--applications <N,..>': 0 is not in 1..=256"),
        (&["ttcp", "--windows", "0"], "'--windows <OCTETS,..>': 0 is not in 1..=1073741824"),
    ] {
        let output = command(words).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && errors.contains(expected), "{words:?}: {errors}");
    }
}
