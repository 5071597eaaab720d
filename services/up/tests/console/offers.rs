//! The offers of a trader in the console.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use spandrel::services::cos_trading::{Lookup, Property};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::services::cos_trading_repos::service_type_repository::{PropStruct, PropertyMode};
use spandrel::types::{Any, TypeCode};
use spandrel::{Endpoint, ObjectRef, Orb};
use spandrel_test_support::browser::in_browser;
use spandrel_trading::{TradingOptions, TradingService};

use super::process::{WithConsole, data};

/// A trader with the service type `Printer`.
struct Trader {
    service: Option<TradingService>,
    orb: Orb,
}

impl Trader {
    fn start() -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let service = TradingService::start(&orb, TradingOptions::default()).unwrap();
        let trader = Self { service: Some(service), orb };
        let types: ServiceTypeRepository = trader.lookup().type_repos().unwrap().unwrap().narrow().unwrap();
        let prop =
            |name: &str, value_type| PropStruct { name: name.into(), value_type, mode: PropertyMode::PropNormal };
        types.add_type("Printer", "", &[prop("name", TypeCode::STRING), prop("ppm", TypeCode::LONG)], &[]).unwrap();
        trader
    }

    fn lookup(&self) -> Lookup {
        self.service.as_ref().unwrap().lookup().narrow().unwrap()
    }

    fn export(&self, object: &ObjectRef, name: &str, ppm: i32) {
        let properties = [
            Property { name: "name".into(), value: Any::new(name.to_owned()).unwrap() },
            Property { name: "ppm".into(), value: Any::new(ppm).unwrap() },
        ];
        self.lookup().register_if().unwrap().unwrap().export(Some(object), "Printer", &properties).unwrap();
    }

    fn option(&self) -> String {
        format!("-ORBInitRef TradingService={}", self.service.as_ref().unwrap().lookup())
    }
}

impl Drop for Trader {
    fn drop(&mut self) {
        self.service.take().unwrap().stop().unwrap();
        self.orb.shutdown().unwrap();
    }
}

#[test]
fn offers_are_queried_and_lead_to_their_objects() {
    let trader = Trader::start();
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &["--orb", &trader.option()]);
    let naming = trader.orb.string_to_object(&console.naming).unwrap();
    trader.export(&naming, "<b>laser</b>", 35);
    trader.export(&naming, "matrix", 2);
    assert_eq!(console.api("GET /api/offers/types", ""), (200, json!({ "types": ["Printer"], "truncated": false })));
    let (status, answer) = console.api("GET /api/offers?type=Printer&constraint=ppm%20%3E%201&prefer=min%20ppm", "");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["offers"][0]["properties"], json!({ "name": "\"matrix\"", "ppm": "2" }));
    assert_eq!(answer["offers"][1]["properties"]["name"], "\"<b>laser</b>\"");
    assert_eq!((&answer["truncated"], answer["offers"].as_array().unwrap().len()), (&json!(false), 2));
    for (query, reason) in
        [("type=Scanner", "UnknownServiceType"), ("type=Printer&constraint=ppm%20%3E", "IllegalConstraint")]
    {
        let (status, problem) = console.api(&format!("GET /api/offers?{query}"), "");
        assert!(status == 400 && problem.to_string().contains(reason), "{status} {problem}");
    }
    // 200 are shown.
    (0..250).for_each(|nth| trader.export(&naming, "many", 1_000 + nth));
    let (_, answer) = console.api("GET /api/offers?type=Printer", "");
    assert_eq!((&answer["truncated"], answer["offers"].as_array().unwrap().len()), (&json!(true), 200));

    in_browser(async |page| {
        page.open(&console.login).await;
        page.click("nav a[href='#/offers']").await;
        page.wait("document.querySelector('#offer-types option[value=Printer]')").await;
        page.set("#offer-type", "Printer").await;
        page.set("#offer-constraint", "ppm < 100").await;
        page.set("#offer-preference", "max ppm").await;
        page.click("form button[type=submit]").await;
        page.wait("document.querySelectorAll('#offers tbody tr').length === 2").await;
        page.wait("document.querySelector('#offers tbody td').textContent === '\"<b>laser</b>\"'").await;
        page.picture("offers").await;
        page.set("#offer-constraint", "ppm <").await;
        page.click("form button[type=submit]").await;
        page.wait_for_text("IllegalConstraint").await;
        page.set("#offer-constraint", "ppm == 2").await;
        page.click("form button[type=submit]").await;
        page.wait("document.querySelectorAll('#offers tbody tr').length === 1").await;
        page.click("#offers tbody button").await;
        page.wait("location.hash.startsWith('#/names?reference=')").await;
        // The browser reports the refused query, and nothing else.
        let messages = page.messages().await;
        assert!(messages.iter().all(|message| message.contains("status of 400")), "{messages:?}");
    });
}

#[test]
fn a_console_without_a_trader_says_so_and_the_policy_decides() {
    let trader = Trader::start();
    let (folder, data) = data();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "bob bob-bob-bob-bob-bob\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let policy = folder.path().join("policy.toml");
    let rule = "[[rule]]\naction = \"allow\"\nidentity = \"token:bob\"\noperation = \"query\"\npath = \"Printer\"\n";
    fs::write(&policy, rule).unwrap();
    let words = ["--policy", policy.to_str().unwrap(), "--console-tokens", tokens.to_str().unwrap()];
    let mut without = WithConsole::start(&data, &words);
    without.token = "bob-bob-bob-bob-bob".to_owned();
    let (status, problem) = without.api("GET /api/offers?type=Printer", "");
    assert!(status == 404 && problem.to_string().contains("-ORBInitRef TradingService=URL"), "{status} {problem}");
    without.kill();
    let option = trader.option();
    let mut console = WithConsole::start(&data, &[&words[..], &["--orb", &option]].concat());
    console.token = "bob-bob-bob-bob-bob".to_owned();
    assert_eq!(console.api("GET /api/offers?type=Printer", "").0, 200);
    for request in ["GET /api/offers?type=Other", "GET /api/offers/types"] {
        let (status, problem) = console.api(request, "");
        assert!(status == 403 && problem.to_string().contains("is denied"), "{status} {problem}");
    }
}
