//! The OpenAPI document.

use serde_json::{Value, json};
use spandrel_proxy::Exposure;

use crate::fixture::{Fixture, Settings};

#[test]
fn the_document_has_all_operations_with_their_comments() {
    let fixture = Fixture::bank(Settings::default());
    let response = fixture.send("GET", "/openapi.json", "");
    assert_eq!(response.status, 200, "{response:?}");
    let document = response.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let deposit = &paths["/Bank/alice/deposit"]["post"];
    assert_eq!(deposit["description"], "Adds cents, and returns the balance.");
    assert_eq!(deposit["operationId"], "Bank_alice_deposit");
    assert_eq!(paths["/Bank/alice/limit"].as_object().unwrap().keys().collect::<Vec<_>>(), ["get", "put"]);
    assert_eq!(paths["/Bank/alice/owner"].as_object().unwrap().keys().collect::<Vec<_>>(), ["get"]);
    assert!(paths["/Bank/alice/note"]["post"]["responses"].get("202").is_some());
    let raised = &paths["/Bank/alice/withdraw"]["post"]["responses"]["422"];
    assert!(raised.to_string().contains("IDL:Bank/Refused:1.0"), "{raised}");
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Bank.Reason"]["enum"], json!(["overdrawn", "closed"]));
    let text = schemas["Bank.Reason"]["description"].as_str().unwrap();
    assert!(text.contains("Why a withdrawal is refused."), "{text}");
    assert_eq!(document["tags"][0]["name"], "Bank/alice");
    references_are_defined(&document, &document);
}

#[test]
fn the_document_has_only_what_is_served() {
    let operations = vec!["deposit".to_owned(), "lim*".to_owned()];
    let exposures = Some(vec![Exposure { name: "Bank/alice".into(), operations }]);
    let fixture = Fixture::bank(Settings { exposures, ..Settings::default() });
    let document = fixture.send("GET", "/openapi.json", "").json();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/Bank/alice/deposit", "/Bank/alice/limit"]);
    assert_eq!(fixture.send("GET", "/Bank/alice/owner", "").status, 404);
    assert_eq!(fixture.send("POST", "/Bank/alice/deposit", "[1]").status, 200);
}

#[test]
fn every_type_has_a_schema() {
    let fixture = Fixture::types();
    let document = fixture.send("GET", "/openapi.json", "").json();
    references_are_defined(&document, &document);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in ["Record", "Choice", "Tree", "Colour", "Mismatch"] {
        assert!(schemas.get(&format!("interop.spandrel.Interop.{name}")).is_some_and(Value::is_object), "{name}");
    }
    // A recursive struct refers to itself, here by a sequence.
    let refers = |of: &str, to: &str| schemas[&format!("interop.spandrel.Interop.{of}")].to_string().contains(to);
    assert!(refers("Tree", "Interop.Forest") && refers("Forest", "Interop.Tree"));
}

/// Checks that every reference leads to a schema.
fn references_are_defined(value: &Value, document: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                let found = document.pointer(target.strip_prefix('#').expect("a local reference"));
                assert!(found.is_some_and(Value::is_object), "{target}");
            }
            members.values().for_each(|member| references_are_defined(member, document));
        }
        Value::Array(elements) => elements.iter().for_each(|element| references_are_defined(element, document)),
        _ => {}
    }
}
