//! The channels of event and notification services in the console.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use spandrel::services::cos_event_channel_admin::{EventChannel, ProxyPushConsumer};
use spandrel::services::cos_notification::{EventHeader, EventType, FixedEventHeader, Property, StructuredEvent};
use spandrel::types::Any;
use spandrel::{Endpoint, Orb};
use spandrel_event::{EventOptions, EventService};
use spandrel_notification::{NotificationOptions, NotificationService};
use spandrel_test_support::browser::in_browser;
use spandrel_test_support::wait_until;

use super::process::{WithConsole, data};

/// An event service with the channel `Alarms`, and a notification service with the persistent channel `plant`.
struct Channels {
    orb: Orb,
    event: Option<EventService>,
    notification: Option<NotificationService>,
    _folder: tempfile::TempDir,
}

impl Channels {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let event = EventService::start(&orb, EventOptions::default()).unwrap();
        event.channel("Alarms").unwrap();
        let notification = NotificationService::start(&orb, NotificationOptions::new(folder.path())).unwrap();
        notification.channel("plant", true).unwrap();
        Self { orb, event: Some(event), notification: Some(notification), _folder: folder }
    }

    fn options(&self) -> [String; 4] {
        let [event, notification] =
            [self.event.as_ref().unwrap().factory(), self.notification.as_ref().unwrap().factory()];
        let option = |name: &str, object| format!("-ORBInitRef {name}={object}");
        let words = ["--orb".to_owned(), option("EventService", event)];
        let [first, second] = words;
        [first, second, "--orb".to_owned(), option("NotificationService", notification)]
    }

    /// A connected supplier of a channel of either service.
    fn supplier(&self, is_notification: bool) -> ProxyPushConsumer {
        let channel = match is_notification {
            true => self.notification.as_ref().unwrap().channel("plant", true).unwrap(),
            false => self.event.as_ref().unwrap().channel("Alarms").unwrap(),
        };
        let channel: EventChannel = channel.unchecked_narrow();
        let proxy = channel.for_suppliers().unwrap().unwrap().obtain_push_consumer().unwrap().unwrap();
        proxy.connect_push_supplier(None).unwrap();
        proxy
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            event.stop().unwrap();
        }
        self.notification.take().unwrap().stop().unwrap();
        self.orb.shutdown().unwrap();
    }
}

fn alarm() -> Any {
    let event_type = EventType { domain_name: "Plant".into(), type_name: "Alarm".into() };
    let fixed_header = FixedEventHeader { event_type, event_name: "boiler".into() };
    let field = Property { name: "level".into(), value: Any::new(7_i32).unwrap() };
    let header = EventHeader { fixed_header, variable_header: Vec::new() };
    Any::new(StructuredEvent { header, filterable_data: vec![field], remainder_of_body: Any::default() }).unwrap()
}

const ALARMS: &str = "service=EventService&channel=Alarms";
const PLANT: &str = "service=NotificationService&channel=1";

fn begin(console: &WithConsole, channel: &str) -> u64 {
    let (status, answer) = console.api(&format!("POST /api/channels/tail?{channel}"), "");
    assert_eq!(status, 200, "{answer}");
    answer["tail"].as_u64().unwrap()
}

#[test]
fn channels_show_their_consumers_lag_and_live_events() {
    let channels = Channels::start();
    let (_folder, data) = data();
    let options = channels.options();
    let console = WithConsole::start(&data, &options.each_ref().map(String::as_str));
    let ok = |request: &str| {
        let (status, answer) = console.api(request, "");
        assert_eq!(status, 200, "{request}: {answer}");
        answer
    };
    let services = |answer: &Value| [answer["services"][0].clone(), answer["services"][1].clone()];
    let [event, notification] = services(&ok("GET /api/channels"));
    assert_eq!((&event["service"], &event["channels"][0]["name"]), (&json!("EventService"), &json!("Alarms")));
    assert_eq!(notification["channels"][0]["name"], "1");
    assert_eq!(notification["channels"][0]["alias"], "plant");

    // A live tail is a consumer, which lags until its page asks.
    let suppliers = [channels.supplier(false), channels.supplier(true)];
    let tails = [begin(&console, ALARMS), begin(&console, PLANT)];
    suppliers[0].push(&Any::new("<b>empty</b>\u{1b}".to_owned()).unwrap()).unwrap();
    suppliers[1].push(&alarm()).unwrap();
    for channel in [ALARMS, PLANT] {
        let answer = ok(&format!("GET /api/channels/consumers?{channel}"));
        let consumer = &answer["consumers"][0];
        assert_eq!((&consumer["queued"], &consumer["pushed"]), (&json!(1), &json!(false)), "{answer}");
        wait_until("lag", || {
            ok(&format!("GET /api/channels/consumers?{channel}"))["consumers"][0]["lag_ms"].as_u64() > Some(0)
        });
    }
    for service in services(&ok("GET /api/channels")) {
        let channel = &service["channels"][0];
        assert_eq!((&channel["received"], &channel["longest_queue"]), (&json!(1), &json!(1)), "{service}");
        assert!(channel["lag_ms"].as_u64() > Some(0), "{service}");
    }
    let text = &ok(&format!("GET /api/channels/tail/{}", tails[0]))["events"];
    assert_eq!(text[0]["type"], "string");
    assert!(text[0]["text"].as_str().unwrap().contains("<b>empty</b>"), "{text}");
    let alarm = &ok(&format!("GET /api/channels/tail/{}", tails[1]))["events"];
    assert_eq!(*alarm, json!([{ "type": "Plant/Alarm", "text": "boiler level=7" }]));
    for tail in tails {
        ok(&format!("DELETE /api/channels/tail/{tail}"));
        assert_eq!(console.api(&format!("GET /api/channels/tail/{tail}"), "").0, 410);
    }
    for channel in [ALARMS, PLANT] {
        assert_eq!(ok(&format!("GET /api/channels/consumers?{channel}"))["consumers"], json!([]));
    }
    // A console has at most so many live tails.
    let tails: Vec<u64> = (0..16).map(|_| begin(&console, ALARMS)).collect();
    assert_eq!(console.api(&format!("POST /api/channels/tail?{ALARMS}"), "").0, 503);
    assert_eq!(ok(&format!("GET /api/channels/consumers?{ALARMS}"))["consumers"].as_array().unwrap().len(), 16);
    tails.iter().for_each(|tail| _ = ok(&format!("DELETE /api/channels/tail/{tail}")));
    for (request, status) in [
        ("GET /api/channels/consumers?service=EventService&channel=None", 404),
        ("POST /api/channels/tail?service=NotificationService&channel=77", 404),
        ("POST /api/channels/tail?service=NotificationService&channel=plant", 404),
        ("POST /api/channels/tail?service=TradingService&channel=1", 400),
    ] {
        let (answered, problem) = console.api(request, "");
        assert_eq!(answered, status, "{request}: {problem}");
    }

    in_browser(async |page| {
        page.open(&console.login).await;
        page.click("nav a[href='#/channels']").await;
        page.wait("document.querySelector('[data-service=NotificationService] [data-channel=\"1\"]')").await;
        page.click("[data-service=EventService] [data-channel=Alarms] button").await;
        page.wait_for_text("No consumer is connected.").await;
        page.click("#channel .tail-toggle").await;
        page.wait_for_text("Connected: events appear").await;
        for number in 0..3_i32 {
            suppliers[0].push(&Any::new(number).unwrap()).unwrap();
        }
        suppliers[0].push(&Any::new("<b>full</b>".to_owned()).unwrap()).unwrap();
        page.wait("document.querySelectorAll('#channel .lines .line').length === 4").await;
        page.wait("document.querySelector('#channel .lines .line').textContent.includes('<b>full</b>')").await;
        page.wait("document.querySelectorAll('#channel .consumers tbody tr').length === 1").await;
        page.picture("channels").await;
        page.click("#channel .tail-toggle").await;
        page.wait_for_text("No consumer is connected.").await;
        // A page that is left takes its consumer with it.
        page.click("[data-service=NotificationService] [data-channel='1'] button").await;
        page.wait("document.querySelector('#channel h2').textContent === '1'").await;
        page.click("#channel .tail-toggle").await;
        page.wait("document.querySelectorAll('#channel .consumers tbody tr').length === 1").await;
        page.click("nav a[href='#/log']").await;
        wait_until("the end of the tail", || {
            ok(&format!("GET /api/channels/consumers?{PLANT}"))["consumers"] == json!([])
        });
        assert_eq!(page.messages().await, [""; 0]);
    });
}

/// A tail without a page ends by itself, and a service that ends is a problem of its own.
#[test]
fn live_events_end_without_a_page_and_services_fail_alone() {
    let mut channels = Channels::start();
    let (_folder, data) = data();
    let options = channels.options();
    let console = WithConsole::start(&data, &options.each_ref().map(String::as_str));
    let tail = begin(&console, PLANT);
    let begun = std::time::Instant::now();
    let consumers = || console.api(&format!("GET /api/channels/consumers?{PLANT}"), "").1["consumers"].clone();
    assert_eq!(consumers().as_array().unwrap().len(), 1);
    wait_until("the end of the tail", || consumers() == json!([]));
    assert!(begun.elapsed() >= Duration::from_secs(20), "{:?}", begun.elapsed());
    let (status, problem) = console.api(&format!("GET /api/channels/tail/{tail}"), "");
    assert!(status == 410 && problem["title"] == "the live tail has ended", "{status} {problem}");
    channels.event.take().unwrap().stop().unwrap();
    let (status, answer) = console.api("GET /api/channels", "");
    assert_eq!(status, 200, "{answer}");
    assert!(answer["services"][0]["problem"]["title"].is_string(), "{answer}");
    assert_eq!(answer["services"][1]["channels"][0]["name"], "1");
}

#[test]
fn a_console_without_channels_says_so_and_the_policy_decides_about_them() {
    let channels = Channels::start();
    let (folder, data) = data();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "bob bob-bob-bob-bob-bob\nann ann-ann-ann-ann-ann\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let policy = folder.path().join("policy.toml");
    let rule = |operation: &str, path: &str| {
        format!("[[rule]]\naction = \"allow\"\nidentity = \"token:*\"\noperation = \"{operation}\"\n{path}\n")
    };
    let alarms = "path = \"Alarms\"";
    let rules = [rule("channels", ""), rule("consumers", alarms), rule("obtain_pull_supplier", alarms)];
    fs::write(&policy, rules.concat()).unwrap();
    let words = ["--policy", policy.to_str().unwrap(), "--console-tokens", tokens.to_str().unwrap()];
    let mut without = WithConsole::start(&data, &words);
    without.token = "bob-bob-bob-bob-bob".to_owned();
    let (status, problem) = without.api("GET /api/channels", "");
    assert!(status == 404 && problem.to_string().contains("-ORBInitRef EventService=URL"), "{status} {problem}");
    without.kill();
    let options = channels.options();
    let mut console = WithConsole::start(&data, &[&words[..], &options.each_ref().map(String::as_str)].concat());
    console.token = "bob-bob-bob-bob-bob".to_owned();
    for (request, expected) in [
        ("GET /api/channels".to_owned(), 200),
        (format!("GET /api/channels/consumers?{ALARMS}"), 200),
        (format!("GET /api/channels/consumers?{PLANT}"), 403),
        (format!("POST /api/channels/tail?{PLANT}"), 403),
    ] {
        let (status, answer) = console.api(&request, "");
        assert_eq!(status, expected, "{request}: {answer}");
    }
    // A tail belongs to its token.
    let tail = begin(&console, ALARMS);
    console.token = "ann-ann-ann-ann-ann".to_owned();
    assert_eq!(console.api(&format!("GET /api/channels/tail/{tail}"), "").0, 410);
    assert_eq!(console.api(&format!("DELETE /api/channels/tail/{tail}"), "").0, 410);
    console.token = "bob-bob-bob-bob-bob".to_owned();
    assert_eq!(console.api(&format!("GET /api/channels/tail/{tail}"), "").0, 200);
}
