//! `spandrel events` against our event service.

use serde_json::{Value, json};
use spandrel::{Endpoint, Orb};
use spandrel_event::{EventOptions, EventService, FACTORY_KEY};
use spandrel_test_support::wait_until;

use crate::support::{check_code, spandrel, stderr, stdout};

#[test]
fn channels_are_created_listed_watched_and_pushed_to() {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let service = EventService::start(&orb, EventOptions::default()).unwrap();
    let (host, port) = orb.listen().unwrap().remove(0);
    let url = format!("corbaloc::{host}:{port}/{FACTORY_KEY}");
    let run = |words: &[&str]| spandrel(&[&["events"], words, &["--at", &url]].concat());
    let ok = |words: &[&str]| {
        let output = run(words);
        check_code(&output, 0);
        stdout(&output)
    };
    let json = |words: &[&str]| -> Value { serde_json::from_str(&ok(&[words, &["--json"]].concat())).unwrap() };
    assert!(ok(&["create", "Alarms"]).starts_with("IOR:"));
    let again = run(&["create", "Alarms"]);
    check_code(&again, 1);
    assert!(stderr(&again).contains("cannot create the channel `Alarms`"), "{}", stderr(&again));
    let output = std::thread::scope(|scope| {
        let watching = scope.spawn(|| ok(&["watch", "Alarms", "--events", "2", "--json"]));
        wait_until("a consumer", || json(&["list"])[0]["consumers"] == 1);
        ok(&["push", "Alarms", "string \"empty\\u001b\""]);
        ok(&["push", "Alarms", "long 5"]);
        watching.join().unwrap()
    });
    let events: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 2, "{output}");
    assert_eq!(events[1]["value"], json!(5));
    assert!(!output.contains('\u{1b}'));
    wait_until("the counts", || json(&["list"])[0]["delivered"] == 2);
    assert_eq!(json(&["list"])[0]["received"], 2);
    assert_eq!(ok(&["lag", "Alarms"]).lines().count(), 1, "the consumer has left");
    assert!(ok(&["list"]).contains("Alarms"));
    check_code(&run(&["push", "Alarms", "nonsense"]), 2);
    for words in [&["lag", "none"][..], &["push", "none", "long 5"]] {
        let output = run(words);
        check_code(&output, 1);
        assert!(stderr(&output).contains("`none`"), "{}", stderr(&output));
    }
    service.stop().unwrap();
    orb.shutdown().unwrap();
    let absent = run(&["list"]);
    check_code(&absent, 1);
    assert!(stderr(&absent).contains("cannot ask the event service for its monitor"), "{}", stderr(&absent));
}
