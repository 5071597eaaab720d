//! `spandrel events` against our event service.

use serde_json::{Value, json};
use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::{Endpoint, Orb};
use spandrel_event::{EventOptions, EventService, FACTORY_KEY};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_notification::{NotificationOptions, NotificationService};
use spandrel_test_support::wait_until;

use crate::support::{LIMIT, check_code, spandrel, stderr, stdout};

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

/// Structured events with filters, by the factory of a notification service.
#[test]
fn channels_of_a_notification_service_are_created_watched_and_pushed_to() {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let names = NamingService::start(&orb, NamingOptions::new(folder.path())).unwrap();
    let service = NotificationService::start(&orb, NotificationOptions::new(folder.path())).unwrap();
    let (host, port) = orb.listen().unwrap().remove(0);
    let url = format!("corbaloc::{host}:{port}/NotificationService");
    let root_url = format!("corbaloc::{host}:{port}/NameService");
    let root = format!("-ORBInitRef NameService={root_url}");
    let run = |words: &[&str]| spandrel(&[&["events"], words, &["--at", &url, "--orb", &root]].concat());
    let ok = |words: &[&str]| {
        let output = run(words);
        check_code(&output, 0);
        stdout(&output)
    };
    let json = |words: &[&str]| -> Value { serde_json::from_str(&ok(&[words, &["--json"]].concat())).unwrap() };
    let created = json(&["create", "plant/alarms", "--persistent"]);
    assert_eq!(created["number"], json!(1));
    let listed = json!([{
        "number": 1, "consumers": 0, "suppliers": 0, "persistent_connections": true, "persistent_events": true
    }]);
    assert_eq!(json(&["list"]), listed);
    let output = std::thread::scope(|scope| {
        let watching =
            scope.spawn(|| ok(&["watch", "plant/alarms", "--events", "2", "--json", "--filter", "$level > 5"]));
        spandrel_test_support::wait_until("a consumer", || json(&["list"])[0]["consumers"] == 1);
        for (channel, level) in [("1", 9), ("plant/alarms", 2), (created["reference"].as_str().unwrap(), 7)] {
            let field = format!("level=long {level}");
            let parts =
                ["--type", "Plant/Alarm", "--name", "boiler", "--header", "Priority=short 3", "--field", &field];
            ok(&[&["push", channel, "string \"hot\\u001b\""], &parts[..]].concat());
        }
        let ends = spandrel_test_support::holds_within(LIMIT / 2, || watching.is_finished());
        assert!(ends, "an event has not arrived: {} {}", json(&["list"]), json(&["lag", "1"]));
        watching.join().unwrap()
    });
    let events: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let event = |level: i32| {
        json!({
            "domain": "Plant", "type": "Alarm", "name": "boiler",
            "header": {"Priority": 3}, "fields": {"level": level}, "body": "hot\u{1b}",
        })
    };
    assert_eq!(events, [event(9), event(7)]);
    // Nothing of the commands is left but the channel.
    assert_eq!(json(&["list"]), listed);
    // A consumer that pulls nothing lags behind, by whatever name its channel is known.
    let channel: EventChannel =
        orb.string_to_object(created["reference"].as_str().unwrap()).unwrap().unchecked_narrow();
    let proxy = channel.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap().unwrap();
    proxy.connect_pull_consumer(None).unwrap();
    (0..3).for_each(|_| assert_eq!(ok(&["push", "1", "long 5"]), ""));
    for channel in ["1", "plant/alarms", created["reference"].as_str().unwrap()] {
        let lag = json(&["lag", channel]);
        assert_eq!((&lag[0]["queued"], &lag[0]["pushed"]), (&json!(3), &json!(false)), "{channel}: {lag}");
        assert!(lag[0]["lag_ms"].as_u64().is_some_and(|lag| lag > 0) && lag[1].is_null(), "{lag}");
    }
    assert!(ok(&["lag", "1"]).contains("pull  3 "));
    proxy.disconnect_pull_supplier().unwrap();
    assert!(ok(&["list"]).contains("connections, events"));
    for (words, code, text) in [
        (&["push", "1", "long 5", "--field", "level"][..], 2, "is not NAME=VALUE"),
        (&["push", "1", "long 5", "--type", "Alarm"], 2, "is not DOMAIN/TYPE"),
        (&["push", "77", "long 5"], 1, "cannot use the channel 77"),
        (&["watch", "1", "--filter", "$level >"], 1, "cannot use the filter"),
        (&["create", "5"], 2, "cannot be the name of a channel"),
        (&["create", "plant/alarms"], 1, "cannot bind"),
        (&["lag", "77"], 1, "cannot show the consumers of `77`"),
        (&["lag", "NameService"], 1, "is not bound"),
        (&["lag", &root_url], 1, "is no channel of this notification service"),
    ] {
        let output = run(words);
        check_code(&output, code);
        assert!(stderr(&output).contains(text), "{words:?}: {}", stderr(&output));
    }
    assert_eq!(json(&["list"]), listed);
    service.stop().unwrap();
    names.stop().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn options_of_a_notification_service_are_refused_by_an_event_service() {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let service = EventService::start(&orb, EventOptions::default()).unwrap();
    let (host, port) = orb.listen().unwrap().remove(0);
    let url = format!("corbaloc::{host}:{port}/{FACTORY_KEY}");
    for words in [
        &["create", "A", "--persistent"][..],
        &["push", "A", "long 5", "--name", "n"],
        &["watch", "A", "--filter", "TRUE"],
    ] {
        let output = spandrel(&[&["events"], words, &["--at", &url]].concat());
        check_code(&output, 1);
        assert!(stderr(&output).contains("needs a notification service"), "{}", stderr(&output));
    }
    service.stop().unwrap();
    orb.shutdown().unwrap();
}
