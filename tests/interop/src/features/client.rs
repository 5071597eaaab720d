//! The client: its cases have the same names as those of the foreign clients.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use spandrel::dynamic::{CreateRequest, Request, RequestError};
use spandrel::policy::{SetOverrideType, SyncScopePolicy};
use spandrel::{
    ObjectRef, Orb, SystemException,
    types::{IiopProfile, Interface, Located, TypeCode, Typed},
};

use super::contexts;
use crate::features_idl::*;
use crate::suite::{Suite, Tally, equal, kind, not_nil, poll_until, raises};

/// The timeout of each call, short so that a server that does not answer is detected soon.
const TIME_LIMIT: Duration = Duration::from_secs(4);
/// The time that a server may take to restart.
const RESTART_LIMIT: Duration = Duration::from_secs(20);

/// Runs the cases whose names begin with `only` against a desk; `say` receives a line for each.
///
/// # Errors
/// If the reference does not denote a desk.
pub fn run(orb: &Orb, reference: &str, only: &str, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    let object = orb.string_to_object(reference)?.with_timeout(Some(TIME_LIMIT));
    let desk = Desk::narrow(&object).context("the object is not a desk")?;
    let mut suite = Suite::new(only, say);
    let plain = with_time_limit(desk.plain()?)?;
    operations(&mut suite, &desk, &plain);
    adapters(&mut suite, &desk);
    managers(&mut suite, &desk);
    keys(&mut suite, orb, &plain);
    dynamic(&mut suite, &desk, &plain);
    oneways(&mut suite, &desk, &plain);
    contexts(&mut suite, &plain);
    restart(&mut suite, &desk, &plain);
    suite.case("shutdown", || Ok(desk.shutdown()?));
    orb.shutdown()?;
    Ok(suite.tally)
}

/// The target that the server returned, with the time limit set.
fn with_time_limit(target: Option<Target>) -> Result<Target> {
    Ok(Target::unchecked_narrow(&not_nil(target)?.as_object().with_timeout(Some(TIME_LIMIT))))
}

fn is_kind(name: &'static str) -> impl FnOnce(&SystemException) -> bool {
    move |error| kind(error) == name
}

fn operations(suite: &mut Suite<'_>, desk: &Desk, plain: &Target) {
    let object = plain.as_object();
    suite.case("operations/is-a", || {
        equal("a target", object.is_a(Target::REPOSITORY_ID)?, true)?;
        equal("a desk", object.is_a(Desk::REPOSITORY_ID)?, false)
    });
    suite.case("operations/non-existent", || {
        equal("plain", object.non_existent()?, false)?;
        equal("destroyed", with_time_limit(desk.destroyed()?)?.as_object().non_existent()?, true)
    });
    suite.case("operations/repository-id", || equal("id", object.repository_id()?.as_str(), Target::REPOSITORY_ID));
    suite.case("operations/interface", || match object.interface() {
        Ok(None) => Ok(()),
        Ok(Some(_)) => bail!("there is no interface repository"),
        Err(error) if ["INTF_REPOS", "NO_IMPLEMENT", "INITIALIZE"].contains(&kind(&error)) => Ok(()),
        Err(error) => bail!(error),
    });
    suite.case("operations/component", || equal("component", object.component()?, None));
    suite.case("operations/equivalent", || {
        let second = with_time_limit(desk.plain()?)?;
        equal("equivalent", object.is_equivalent(second.as_object()), true)?;
        equal("hash", object.hash(1000), second.as_object().hash(1000))?;
        equal("another", object.is_equivalent(desk.as_object()), false)
    });
    suite.case("locate/here", || equal("located", object.locate()?, Located::Here));
    suite.case("locate/unknown", || match with_time_limit(desk.destroyed()?)?.as_object().locate() {
        Ok(Located::Unknown) => Ok(()),
        // As LOC_SYSTEM_EXCEPTION, in GIOP 1.2.
        Err(error) if kind(&error) == "OBJECT_NOT_EXIST" => Ok(()),
        other => bail!("located: {other:?}"),
    });
}

fn adapters(suite: &mut Suite<'_>, desk: &Desk) {
    suite.case("locator/found", || equal("name", with_time_limit(desk.located("one")?)?.name()?.as_str(), "one"));
    suite.case("locator/moved", || equal("name", with_time_limit(desk.located("moved")?)?.name()?.as_str(), "plain"));
    suite.case("locator/gone", || raises(with_time_limit(desk.located("gone")?)?.name(), is_kind("OBJECT_NOT_EXIST")));
    suite.case("activator/found", || equal("name", with_time_limit(desk.activated("two")?)?.name()?.as_str(), "two"));
    suite.case("activator/once", || {
        let target = with_time_limit(desk.activated("three")?)?;
        (0..3).try_for_each(|_| target.name().map(drop))?;
        equal("incarnations", desk.incarnations("three")?, 1)
    });
    suite.case("activator/moved", || {
        equal("name", with_time_limit(desk.activated("moved")?)?.name()?.as_str(), "plain")
    });
    suite.case("activator/gone", || {
        raises(with_time_limit(desk.activated("gone")?)?.name(), is_kind("OBJECT_NOT_EXIST"))
    });
    suite.case("default/names", || {
        equal("name", with_time_limit(desk.by_default("four")?)?.name()?.as_str(), "four")?;
        equal("name", with_time_limit(desk.by_default("five")?)?.name()?.as_str(), "five")
    });
    suite.case("adapter/made", || equal("name", with_time_limit(desk.adapted("six")?)?.name()?.as_str(), "six"));
    suite.case("adapter/destroyed", || raises(with_time_limit(desk.destroyed()?)?.name(), is_kind("OBJECT_NOT_EXIST")));
}

fn managers(suite: &mut Suite<'_>, desk: &Desk) {
    suite.case("manager/held", || {
        let held = with_time_limit(desk.held()?)?;
        let mut request = held.request("_get_name");
        request.set_return_type(String::type_code());
        request.send_deferred()?;
        // Without holding, the reply would precede the one to this call.
        equal("generation", desk.generation()?, 1)?;
        equal("answered", request.poll_response()?, false)?;
        desk.release()?;
        request.get_response()?;
        equal("name", request.return_value::<String>()?.as_str(), "held")
    });
    suite.case("manager/discarding", || raises(with_time_limit(desk.discarded()?)?.name(), is_kind("TRANSIENT")));
}

/// `corbaloc:` with the host and port of a reference.
fn key_url(plain: &Target, key: &str) -> Result<String> {
    let mut profiles = plain.as_object().ior().profiles.iter();
    let profile = profiles.find_map(|profile| IiopProfile::decode(profile).ok()?).context("no profile")?;
    let version = profile.version;
    Ok(format!("corbaloc:iiop:{}.{}@{}:{}/{key}", version.major, version.minor, profile.host, profile.port))
}

fn keys(suite: &mut Suite<'_>, orb: &Orb, plain: &Target) {
    let object =
        |key| -> Result<ObjectRef> { Ok(orb.string_to_object(&key_url(plain, key)?)?.with_timeout(Some(TIME_LIMIT))) };
    suite.case("key/plain", || equal("name", Target::narrow(&object("Greeter")?)?.name()?.as_str(), "plain"));
    suite.case("locate/forward", || match object("Greeter")?.locate()? {
        Located::Forward(ior) | Located::ForwardPermanently(ior) => {
            equal("name", Target::narrow(&orb.reference(ior).with_timeout(Some(TIME_LIMIT)))?.name()?.as_str(), "plain")
        }
        // omniORB activates the object itself under that key.
        Located::Here => Ok(()),
        Located::Unknown => bail!("the object is unknown"),
    });
    suite.case("key/unknown", || {
        raises(Target::unchecked_narrow(&object("Nobody")?).name(), is_kind("OBJECT_NOT_EXIST"))
    });
}

fn halves(target: &Target) -> Result<()> {
    let mut text = "ab".to_owned();
    equal("halves", target.halve(7, &mut text)?, (3, 3.5))?;
    equal("text", text.as_str(), "abab")
}

fn refuses_negative(target: &Target) -> Result<()> {
    raises(
        target.halve(-1, &mut String::new()),
        |error| matches!(error, target::HalveError::Refused(refused) if refused.why == "negative"),
    )
}

fn halve(target: &Target, whole: i32) -> Result<Request, RequestError> {
    let mut request = target.request("halve");
    request.add_in_arg(&whole)?.add_inout_arg("ab")?.add_out_arg(f64::type_code());
    request.set_return_type(TypeCode::LONG).add_exception(Refused::type_code());
    Ok(request)
}

fn check_halved(request: &Request) -> Result<()> {
    let seen = (request.return_value::<i32>()?, request.argument::<String>(1)?, request.argument::<f64>(2)?);
    equal("halved", seen, (3, "abab".to_owned(), 3.5))
}

/// Dynamic invocations by the client, and dynamic skeletons in the server.
fn dynamic(suite: &mut Suite<'_>, desk: &Desk, plain: &Target) {
    suite.case("dii/call", || {
        let mut request = halve(plain, 7)?;
        request.invoke()?;
        check_halved(&request)
    });
    suite.case("dii/exception", || {
        let mut request = halve(plain, -1)?;
        let refused = request.invoke().err().and_then(|error| error.extract::<Refused>());
        equal("refused", refused.map(|refused| refused.why), Some("negative".to_owned()))
    });
    suite.case("dii/oneway", || {
        let mut request = plain.request("note");
        request.add_in_arg(&11_i32)?.add_in_arg(&0_u32)?;
        request.send_oneway()?;
        poll_until("the note", || Ok(plain.noted()? == 11))
    });
    suite.case("dii/deferred", || {
        let mut requests = (0..5).map(|_| halve(plain, 7)).collect::<Result<Vec<_>, _>>()?;
        requests.iter_mut().try_for_each(Request::send_deferred)?;
        requests.iter_mut().try_for_each(|request| {
            request.get_response()?;
            check_halved(request)
        })
    });
    suite.case("dsi/call", || halves(&with_time_limit(desk.dynamically()?)?));
    suite.case("dsi/exception", || refuses_negative(&with_time_limit(desk.dynamically()?)?));
    suite.case("dsi/oneway", || {
        let target = with_time_limit(desk.dynamically()?)?;
        target.note(12, 0)?;
        poll_until("the note", || Ok(target.noted()? == 12))
    });
    suite.case("dsi/operations", || {
        let target = with_time_limit(desk.dynamically()?)?;
        equal("a target", target.as_object().is_a(Target::REPOSITORY_ID)?, true)?;
        equal("gone", target.as_object().non_existent()?, false)
    });
}

fn with_sync_scope(target: &Target, scope: SyncScopePolicy) -> Result<Target> {
    let object = target.as_object().set_policy_overrides(&[scope.into()], SetOverrideType::AddOverride)?;
    Ok(Target::unchecked_narrow(&object))
}

fn oneways(suite: &mut Suite<'_>, desk: &Desk, plain: &Target) {
    suite.case("scope/server", || {
        let target = with_sync_scope(plain, SyncScopePolicy::WithServer)?;
        target.note(21, 0)?;
        poll_until("the note", || Ok(plain.noted()? == 21))?;
        let destroyed = with_sync_scope(&with_time_limit(desk.destroyed()?)?, SyncScopePolicy::WithServer)?;
        raises(destroyed.note(1, 0), is_kind("OBJECT_NOT_EXIST"))
    });
    suite.case("scope/target", || {
        let target = with_sync_scope(plain, SyncScopePolicy::WithTarget)?;
        target.note(22, 100)?;
        equal("noted", plain.noted()?, 22)?;
        let destroyed = with_sync_scope(&with_time_limit(desk.destroyed()?)?, SyncScopePolicy::WithTarget)?;
        raises(destroyed.note(1, 0), is_kind("OBJECT_NOT_EXIST"))
    });
}

fn contexts(suite: &mut Suite<'_>, plain: &Target) {
    suite.case("context/sent", || {
        contexts::set_request_data("said by an interceptor");
        equal("heard", plain.heard()?.as_str(), "said by an interceptor")?;
        equal("heard without", plain.heard()?.as_str(), "")
    });
    suite.case("context/returned", || {
        plain.heard()?;
        equal("returned", contexts::reply_data().as_deref(), Some("answered"))
    });
}

/// The server restarts at the same endpoint while the client holds references.
fn restart(suite: &mut Suite<'_>, desk: &Desk, plain: &Target) {
    suite.case("restart/persistent", || {
        let persistent = with_time_limit(desk.persistent()?)?;
        equal("before", persistent.name()?.as_str(), "persistent")?;
        desk.restart()?;
        let deadline = Instant::now() + RESTART_LIMIT;
        // A server that is shutting down may not answer.
        let desk = Desk::unchecked_narrow(&desk.as_object().with_timeout(Some(Duration::from_secs(1))));
        let transient_kinds = ["COMM_FAILURE", "TRANSIENT", "OBJECT_NOT_EXIST", "OBJ_ADAPTER", "TIMEOUT"];
        loop {
            // JacORB does not finish deactivation of an object that is called without pause.
            thread::sleep(Duration::from_millis(50));
            match desk.generation() {
                Ok(2) => break,
                Err(error) if !transient_kinds.contains(&kind(&error)) => bail!(error),
                other => ensure!(Instant::now() < deadline, "the server does not restart: {other:?}"),
            }
        }
        equal("after", persistent.name()?.as_str(), "persistent")
    });
    suite.case("restart/transient", || raises(plain.name(), is_kind("OBJECT_NOT_EXIST")));
}
