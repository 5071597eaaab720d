//! The service types and offers of a trader.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use spandrel::dynamic::DynAny;
use spandrel::net::error::escape;
use spandrel::services::cos_trading::lookup::{HowManyProps, QueryError, SpecifiedProps};
use spandrel::services::cos_trading::{Lookup, Offer, OfferIterator, Policy};
use spandrel::services::cos_trading_repos::ServiceTypeRepository;
use spandrel::services::cos_trading_repos::service_type_repository::{ListOption, SpecifiedServiceTypes};
use spandrel::types::Any;
use spandrel::{ObjectRef, Orb, SystemException};
use spandrel_proxy::problem::Problem;

use crate::access::{CALL_TIMEOUT, Permissions, failed, invalid};
use crate::names::for_caller;

/// The initial reference of the trader.
const TRADER: &str = "TradingService";
/// The most offers that are shown.
const MAX_OFFERS: u32 = 200;
/// The most service types that are listed.
const MAX_TYPES: usize = 10_000;
/// The most characters of a value.
const MAX_VALUE: usize = 1_000;

/// The trader of the ORB's initial references.
fn trader(orb: &Orb) -> Result<Lookup, Problem> {
    if !orb.has_initial_reference(TRADER) {
        let title = "this process knows no trader";
        let detail = "start it with --orb '-ORBInitRef TradingService=URL'";
        return Err(Problem::new(StatusCode::NOT_FOUND, title).detail(detail));
    }
    let object = orb.resolve_initial_references(TRADER).map_err(|exception| failed(&exception))?;
    Ok(for_caller(&object)?.unchecked_narrow())
}

/// Calls of the trader have a time limit, whatever reference it returns.
fn bounded(object: Option<ObjectRef>, interface: &str) -> Result<ObjectRef, Problem> {
    let object = object.ok_or_else(|| {
        let detail = format!("the trader has no interface {interface}");
        Problem::new(StatusCode::BAD_GATEWAY, "the trader cannot be used").detail(detail)
    })?;
    Ok(for_caller(&object)?.with_timeout(Some(CALL_TIMEOUT)))
}

/// The names of the service types: `{"types":[…],"truncated"}`.
pub(crate) fn types(permissions: &Permissions, orb: &Orb) -> Result<Value, Problem> {
    permissions.check("list_types", "IDL:omg.org/CosTradingRepos/ServiceTypeRepository:1.0", None)?;
    let of_call = |exception: SystemException| failed(&exception);
    let repository = bounded(trader(orb)?.type_repos().map_err(of_call)?, "ServiceTypeRepository")?;
    let repository: ServiceTypeRepository = repository.unchecked_narrow();
    let mut names = repository.list_types(&SpecifiedServiceTypes::Unlisted(ListOption::All)).map_err(of_call)?;
    names.sort();
    let truncated = names.len() > MAX_TYPES;
    names.truncate(MAX_TYPES);
    Ok(json!({ "types": names, "truncated": truncated }))
}

/// The offers that match, each with its properties as text:
/// `{"offers":[{"reference","interface","properties"}],"truncated","limits"}`.
pub(crate) fn query(
    permissions: &Permissions,
    orb: &Orb,
    service_type: &str,
    constraint: &str,
    preference: &str,
) -> Result<Value, Problem> {
    permissions.check("query", "IDL:omg.org/CosTrading/Lookup:1.0", Some(service_type))?;
    let lookup = trader(orb)?;
    let all = SpecifiedProps::Unlisted(HowManyProps::All);
    let card = Any::new(MAX_OFFERS + 1).map_err(|error| Problem::internal(error.to_string()))?;
    let policies = [Policy { name: "return_card".to_owned(), value: card }];
    let answer = lookup.query(service_type, constraint, preference, &policies, &all, MAX_OFFERS + 1);
    let (mut offers, rest, mut limits) = answer.map_err(|error| match error {
        QueryError::System(exception) => failed(&exception),
        refused => invalid(format!("the trader refuses the query: {refused}")),
    })?;
    if let Some(rest) = rest {
        // The trader returned fewer offers than it may.
        _ = for_caller(rest.as_object())?.unchecked_narrow::<OfferIterator>().destroy();
        limits.push("how_many".to_owned());
    }
    limits.retain(|limit| limit != "return_card");
    let truncated = offers.len() > MAX_OFFERS as usize || !limits.is_empty();
    offers.truncate(MAX_OFFERS as usize);
    let offers: Vec<Value> = offers.iter().map(described).collect();
    Ok(json!({ "offers": offers, "truncated": truncated, "limits": limits }))
}

fn described(offer: &Offer) -> Value {
    let mut properties = Map::new();
    for property in &offer.properties {
        let text = DynAny::new(&property.value).map_or_else(|error| format!("({error})"), |value| value.to_string());
        properties.insert(property.name.clone(), json!(escape(&text).at_most(MAX_VALUE).to_string()));
    }
    let reference = offer.reference.as_ref();
    json!({
        "reference": reference.map(ToString::to_string),
        "interface": reference.map(|object| object.type_id().to_owned()).unwrap_or_default(),
        "properties": properties,
    })
}
