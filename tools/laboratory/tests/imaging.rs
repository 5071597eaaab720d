//! Images by calls, by plain sockets and by bulk streams: a short run, and the octets in user space.

use crate::support::{cells, check_code, expects_links, lab, stdout};

#[test]
fn a_short_run_has_a_row_for_each_mechanism() {
    let links = if expects_links() { "loopback,atm" } else { "loopback" };
    let output = lab(&["imaging", "--short", "--link", links]);
    check_code(&output, 0);
    let text = stdout(&output);
    for (link, mechanism) in links.split(',').flat_map(|link| ["plain", "calls", "bulk"].map(|it| (link, it))) {
        let row = cells(&text).into_iter().find(|row| row[0] == link && row[3] == mechanism);
        let row = row.unwrap_or_else(|| panic!("no row of {mechanism} over {link}: {text}"));
        let speed: f64 = row[4].parse().unwrap();
        // The link cannot be faster than its 155 Mbit/s, apart from what its queue takes.
        assert!(speed > 0.0 && (link == "loopback" || speed < 200.0), "{row:?}");
    }
}

#[test]
fn files_by_bulk_streams_do_not_pass_user_space() {
    let output = lab(&["imaging", "--count"]);
    check_code(&output, 0);
    let text = stdout(&output);
    let numbers = |mechanism: &str| -> [u64; 4] {
        let row = cells(&text).into_iter().find(|row| row[0] == mechanism).unwrap_or_else(|| panic!("{text}"));
        let numbers: Vec<u64> = row[1..].iter().map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    for mechanism in ["plain", "bulk"] {
        let [octets, sendfile, sent, received] = numbers(mechanism);
        assert_eq!(sendfile, octets, "{text}");
        assert!(sent < 100_000 && received < 100_000, "{text}");
    }
    let [octets, sendfile, sent, received] = numbers("calls");
    assert!(sendfile == 0 && sent >= octets && received >= octets, "{text}");
}
