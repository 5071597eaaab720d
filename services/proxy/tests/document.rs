//! The OpenAPI document of served interfaces.

use serde_json::{Value, json};
use spandrel::services::cos_naming::{NameComponent, NamingContextExt};
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

/// The names of the objects in the document, in its order.
fn objects(fixture: &Fixture) -> Vec<String> {
    let document = fixture.send("GET", "/openapi.json", "").json();
    let tags = document["tags"].as_array().unwrap();
    tags.iter().map(|tag| tag["name"].as_str().unwrap().to_owned()).collect()
}

fn exposed(names: &[&str]) -> Fixture {
    let exposure = |name: &&str| Exposure { name: (*name).to_owned(), operations: Vec::new() };
    Fixture::bank(Settings { exposures: Some(names.iter().map(exposure).collect()), ..Settings::default() })
}

fn step(id: &str) -> [NameComponent; 1] {
    [NameComponent { id: id.to_owned(), kind: String::new() }]
}

#[test]
fn objects_are_found_in_contexts_within_sixteen_others() {
    let fixture = exposed(&["Deep/*"]);
    let account = fixture.root().resolve_str("Bank/alice").unwrap();
    let mut context = fixture.root().bind_new_context(&step("Deep")).unwrap().unwrap();
    for depth in 1..=17 {
        context.bind(&step(&format!("at{depth}")), account.as_ref()).unwrap();
        context = context.bind_new_context(&step("c")).unwrap().unwrap();
    }
    let mut expected: Vec<_> = (1..=16).map(|depth| format!("Deep/{}at{depth}", "c/".repeat(depth - 1))).collect();
    expected.sort();
    assert_eq!(objects(&fixture), expected);
}

#[test]
fn the_first_500_objects_of_a_long_listing_are_found_and_what_is_not_served_is_left_out() {
    let fixture = exposed(&["Bank/a*", "Bank/branch?/x", "Bank/exact"]);
    let account = fixture.root().resolve_str("Bank/alice").unwrap();
    let bank = fixture.root().resolve_str("Bank").unwrap().unwrap();
    let bank = NamingContextExt::unchecked_narrow(&bank);
    let mut expected = vec!["Bank/alice".to_owned(), "Bank/branch1/x".to_owned(), "Bank/exact".to_owned()];
    for name in ["bob", "exact", "exactly"] {
        bank.bind(&step(name), account.as_ref()).unwrap();
    }
    for name in ["branch1", "branch10"] {
        let branch = bank.bind_new_context(&step(name)).unwrap().unwrap();
        branch.bind(&step("x"), account.as_ref()).unwrap();
    }
    // The naming service lists 200 bindings at a time.
    for nth in 0..520 {
        bank.bind(&step(&format!("a{nth:03}")), account.as_ref()).unwrap();
        expected.push(format!("Bank/a{nth:03}"));
    }
    expected.sort();
    assert_eq!(objects(&fixture), expected[..500]);
    for nth in 490..520 {
        bank.unbind(&step(&format!("a{nth}"))).unwrap();
        expected.retain(|name| *name != format!("Bank/a{nth}"));
    }
    assert_eq!(objects(&fixture), expected, "fewer are all found");
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

#[test]
fn each_operation_has_an_id_of_its_own() {
    let fixture = exposed(&["*"]);
    let account = fixture.root().resolve_str("Bank/alice").unwrap();
    for name in ["Bank_alice", "Bank.alice", "Bank_alice_get"] {
        fixture.root().bind(&step(name), account.as_ref()).unwrap();
    }
    let document = fixture.send("GET", "/openapi.json", "").json();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let ids: Vec<&str> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let different: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(different.len(), ids.len(), "{ids:?}");
    assert!(ids.len() > 30 && ids.contains(&"Bank_alice_deposit") && ids.contains(&"Bank_alice_deposit_2"), "{ids:?}");
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
