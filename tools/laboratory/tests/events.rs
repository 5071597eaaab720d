//! Event channels beside a fan-out in C: a quick run.

use crate::support::{cells, check_code, lab, stdout, text};

#[test]
fn channels_are_measured_beside_a_fan_out_in_c_with_every_event_at_each_consumer() {
    let folder = tempfile::tempdir().unwrap();
    let contenders = "c,event,notification-sequence,fdatasync,persistent-64";
    let out = folder.path().join("results");
    let output = lab(&["events", "--quick", "--contenders", contenders, "--consumers", "1,5", "--out", text(&out)]);
    check_code(&output, 0);
    let printed = stdout(&output);
    let rows = cells(&printed);
    let row = |name: &str, length: usize| {
        let row = rows.iter().find(|row| row[0] == name && row.len() == length);
        row.unwrap_or_else(|| panic!("no row of {name}: {printed}"))
    };
    let number = |cell: &str| -> f64 { cell.replace(',', "").parse().unwrap_or_else(|_| panic!("{cell}: {printed}")) };
    for (name, consumers) in ["c", "event", "notification-sequence"].into_iter().flat_map(|it| [(it, "1"), (it, "5")]) {
        let row = rows.iter().find(|row| row[0] == name && row[1] == consumers && row.len() == 11);
        let row = row.unwrap_or_else(|| panic!("no row of {name}: {printed}"));
        let [deliveries, ratio, processor, events, p50, p99] = [2, 4, 5, 7, 8, 9].map(|cell| number(row[cell]));
        assert!(deliveries > 0.0 && ratio > 0.0 && processor > 0.0, "{printed}");
        assert!(p50 > 0.0 && p50 <= p99, "{printed}");
        // Turns of fewer than 100 events, and the rest of others, are sequences that are not full.
        let most = if name == "notification-sequence" { 100.0 } else { 1.0 };
        assert!((1.0..=most).contains(&events), "{printed}");
    }
    for name in ["c", "event"] {
        // Freed memory may serve for what is measured, so that there is no lower bound.
        assert!(number(row(name, 3)[2]).abs() < 10_000.0, "{printed}");
    }
    for name in ["fdatasync", "persistent-64"] {
        assert!(number(row(name, 5)[1]) > 0.0, "{printed}");
    }
    assert!(printed.contains("goal: deliveries of event to 5 consumers, of c, at least 0.6: "), "{printed}");
    assert!(printed.contains("of omnievents, at least 2: not measured"), "{printed}");
    let file = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let csv = file("samples.csv");
    assert!(csv.starts_with("contender,consumers,round,quantity,unit,value\n"), "{csv}");
    assert!(csv.contains("\nevent,5,0,deliveries,1/s,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&file("samples.json")).unwrap();
    // Memory of three contenders, two points of each, and two on a disk.
    assert_eq!(json["samples"].as_array().unwrap().len(), 3 + 6 + 2, "{json}");
    assert!(file("deliveries.svg").contains(">notification-sequence</text>"));
}
