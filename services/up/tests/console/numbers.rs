//! The numbers of the load from the text of metrics.

use serde_json::json;
use spandrel_console::load_numbers;

#[test]
fn times_are_added_for_each_side_and_operation() {
    let text = "# TYPE spandrel_call_seconds histogram\n\
        spandrel_call_seconds_bucket{interface=\"I\",operation=\"a\",outcome=\"ok\",le=\"0.5\"} 3\n\
        spandrel_call_seconds_bucket{interface=\"I\",operation=\"a\",outcome=\"ok\",le=\"+Inf\"} 4\n\
        spandrel_call_seconds_sum{interface=\"I\",operation=\"a\",outcome=\"ok\"} 1.5\n\
        spandrel_call_seconds_count{interface=\"I\",operation=\"a\",outcome=\"ok\"} 4\n\
        spandrel_call_seconds_count{interface=\"I\",operation=\"a\",outcome=\"TIMEOUT\"} 2\n\
        spandrel_connection_requests_total{side=\"server\",peer=\"iiop://h:1\"} 7\n\
        spandrel_connection_request_octets_total{side=\"server\",peer=\"iiop://h:1\"} 70\n\
        spandrel_connections_open{side=\"server\"} 1\n";
    let numbers = load_numbers(text);
    let client = &numbers["sides"]["client"];
    assert_eq!((&client["count"], &client["errors"], &client["seconds"]), (&json!(6.0), &json!(2.0), &json!(1.5)));
    assert_eq!((&client["bounds"], &client["counts"]), (&json!([0.5]), &json!([3.0])));
    assert_eq!(numbers["operations"][0]["operation"], "a");
    assert_eq!(
        numbers["connections"][0],
        json!({ "side": "server", "peer": "iiop://h:1", "requests": 7.0, "octets": 70.0 })
    );
    assert_eq!(numbers["numbers"]["spandrel_connections_open{side=\"server\"}"], 1.0);
}

#[test]
fn labels_with_escaped_and_missing_marks_are_read() {
    let series = "spandrel_connection_requests_total";
    let numbers = load_numbers(&format!("{series}{{side=\"server\",peer=\"x\\\"}}\\\\y\\n\"}} 3\n"));
    assert_eq!(numbers["connections"][0]["peer"], "x\"}\\y\n");
    for unlabelled in ["", "{}"] {
        let numbers = load_numbers(&format!("{series}{unlabelled} 1\n{unlabelled}\n{unlabelled} x\n"));
        assert_eq!(numbers["connections"][0]["peer"], "", "{unlabelled}");
    }
    for broken in ["{", "{a", "{a=", "{a=\"", "{a=\"x", "{a=\"\\"] {
        let numbers = load_numbers(&format!("{series}{broken} 1\n{broken}\n{broken} x\n"));
        assert_eq!(numbers["connections"], json!([]), "{broken}");
    }
}
