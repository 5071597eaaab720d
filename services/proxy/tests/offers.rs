//! A trader behind the proxy: offers are exported, queried and withdrawn by HTTP.

use std::sync::Arc;

use serde_json::{Value, json};
use spandrel::dynamic::describe;
use spandrel::services::IDL_FILES;
use spandrel::services::cos_trading::Lookup;
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::{Endpoint, Orb};
use spandrel_trading::{TradingOptions, TradingService};

use crate::fixture::{Fixture, Settings};

#[test]
fn offers_are_exported_queried_and_withdrawn() {
    let objects = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let trader = TradingService::start(&objects, TradingOptions::default()).unwrap();
    let lookup: Lookup = trader.lookup().narrow().unwrap();
    let types: ServiceTypeRepository = lookup.type_repos().unwrap().unwrap().narrow().unwrap();
    types.add_type("Printer", "", &[], &[]).unwrap();
    let register = lookup.register_if().unwrap().unwrap();
    let bound = [("trader", "lookup", trader.lookup().clone()), ("trader", "register", register.as_object().clone())];
    let idl = IDL_FILES.into_iter().find(|idl| idl.contains("module CosTrading {")).unwrap();
    let fixture = Fixture::with(Settings::default(), objects, Arc::default(), &bound, describe(idl).unwrap());

    let call = |path: &str, body: &Value| {
        let response = fixture.send("POST", path, &body.to_string());
        (response.status, response.json())
    };
    let laser = "corbaloc::printer.example:2000/laser";
    let property =
        |name: &str, kind: &str, value: Value| json!({ "name": name, "value": { "_type": kind, "_value": value } });
    let properties = json!([property("name", "string", json!("laser")), property("ppm", "long", json!(35))]);
    let export = json!({ "reference": laser, "type": "Printer", "properties": properties });
    let (status, exported) = call("/trader/register/export", &export);
    assert_eq!(status, 200, "{exported}");
    let query = |constraint: &str| {
        let body = json!({
            "type": "Printer", "constr": constraint, "pref": "max ppm", "policies": [],
            "desired_props": { "_d": "all" }, "how_many": 10,
        });
        call("/trader/lookup/query", &body)
    };
    let (status, answer) = query("ppm > 20");
    assert_eq!(status, 200, "{answer}");
    let offer = &answer["out"]["offers"][0];
    assert_eq!(offer["properties"], properties);
    let reference = fixture.objects.string_to_object(offer["reference"].as_str().unwrap()).unwrap();
    assert!(reference.is_equivalent(&fixture.objects.string_to_object(laser).unwrap()));
    assert_eq!((&answer["out"]["offer_itr"], &answer["out"]["limits_applied"]), (&json!(null), &json!([])));
    assert_eq!(query("ppm > 40").1["out"]["offers"], json!([]));
    let (status, problem) = query("ppm >");
    assert_eq!((status, &problem["exception"]["id"]), (422, &json!("IDL:omg.org/CosTrading/IllegalConstraint:1.0")));
    let (status, _) = call("/trader/register/withdraw", &json!({ "id": exported["result"] }));
    assert_eq!((status, trader.offers()), (200, 0));
    drop(fixture);
    drop(trader);
}
