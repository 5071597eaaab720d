//! Media flows: a short run of each measurement.

use crate::support::{cells, check_code, lab, stdout};

/// The numbers of a row behind its first cells.
fn numbers<const N: usize>(row: &[&str], skipped: usize) -> [f64; N] {
    let numbers: Vec<f64> = row[skipped..skipped + N].iter().map(|cell| cell.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn losses_of_a_link_are_counted_and_another_order_is_recovered() {
    let output = lab(&["media", "losses", "--short"]);
    check_code(&output, 0);
    let text = stdout(&output);
    let rows: Vec<_> = cells(&text).into_iter().filter(|row| ["RTP", "SFP:1.0"].contains(&row[0])).collect();
    assert_eq!(rows.len(), 4, "{text}");
    for row in rows {
        let [packets, sent, link_lost, link_reordered, dropped, received, lost, recovered, late, incomplete] =
            numbers(&row, 1);
        assert_eq!(sent, 500.0, "{text}");
        assert!(link_lost > 0.0 && link_reordered > 0.0, "{text}");
        // A machine that is busy drops packets, and delays some beyond the patience of the receiver: half of the frames come in
        // any case. By SFP frames are counted, not packets.
        assert!((sent / 2.0..=sent).contains(&received), "{text}");
        if row[0] == "RTP" {
            // The last packets may be lost without a number behind them.
            assert!((link_lost - 3.0..=link_lost + dropped + late).contains(&lost), "{text}");
            assert!(recovered + late + dropped >= link_reordered - 3.0, "{text}");
            assert!(received >= sent - packets * (link_lost + dropped + late), "{text}");
        }
        if packets == 1.0 {
            assert!(received >= sent - lost - late - 3.0 && incomplete == 0.0, "{text}");
        }
    }
}

#[test]
fn frames_of_two_flows_with_the_same_time_come_together() {
    let output = lab(&["media", "lip-sync", "--short"]);
    check_code(&output, 0);
    let text = stdout(&output);
    let rows = cells(&text);
    let row = rows.iter().find(|row| row[0].parse::<u32>().is_ok()).unwrap_or_else(|| panic!("{text}"));
    let [pairs, median, _, greatest, beyond] = numbers(row, 0);
    // Each second has 25 pairs. A machine that is busy delays some of them: half of them are within 20 ms in any case.
    assert!(pairs >= 20.0 && median <= 20.0 && beyond <= pairs / 2.0 && greatest >= median, "{text}");
}

#[test]
fn many_flows_are_measured_beside_a_sender_in_c() {
    let output = lab(&["media", "many", "--short"]);
    check_code(&output, 0);
    let text = stdout(&output);
    for sender in ["spandrel", "plain C"] {
        let row = cells(&text).into_iter().find(|row| row[0] == sender).unwrap_or_else(|| panic!("{text}"));
        let [flows, packets, late] = numbers(&row, 1);
        // 20 flows of 25 packets in each of two seconds. A machine that is busy loses time, not flows.
        assert_eq!(flows, 20.0, "{text}");
        assert!((500.0..=1_040.0).contains(&packets) && late <= packets / 2.0, "{text}");
    }
}
