//! The hub's operations: empty ones, constants, mixed parameters, names that are keywords, implicit operations.

use spandrel::types::{Context, Interface};

use super::errors::is_requested_mismatch;
use crate::idl::*;
use crate::server;
use crate::suite::{Suite, check, equal, raises};
use crate::values::value;

pub(super) fn run(suite: &mut Suite<'_>, hub: &Hub) {
    suite.case("hub/nothing", || {
        (0..100).try_for_each(|_| hub.nothing())?;
        Ok(())
    });
    suite.case("hub/constants", || equal("constants", hub.all_constants()?, server::all_constants()));
    suite.case("hub/mixed", || {
        let mut entry: Record = value(7, 2);
        let (length, third, reversed, next) = hub.mixed("Grüß", &mut entry, Colour::UltraViolet)?;
        equal("length", length, 4)?;
        equal("third", third, DOUBLE_THIRD)?;
        check("entry", &entry, 7, 4)?;
        equal("reversed", reversed, "ßürG")?;
        equal("next", next, Colour::Red)
    });
    suite.case("hub/mixed-raises", || {
        let mut entry: Record = value(7, 2);
        raises(
            hub.mixed("mismatch", &mut entry, Colour::Red),
            |error| matches!(error, hub::MixedError::Mismatch(what) if is_requested_mismatch(what)),
        )?;
        raises(
            hub.mixed("plain", &mut entry, Colour::Red),
            |error| matches!(error, hub::MixedError::Plain(Plain { code: -1, why }) if why == "plain"),
        )?;
        check("entry", &entry, 7, 2) // untouched
    });
    suite.case("hub/keywords", || equal("product and difference", hub.r#type(6, 7)?, (42, -1)));
    suite.case("hub/context", || {
        let mut context = Context::new();
        context.set("user.name", "Grace").set("user.secret", "not sent");
        equal("surroundings", hub.surroundings("again", &context)?, "- Grace - again")?;
        context.set("locale", "de");
        equal("surroundings", hub.surroundings("", &context)?, "de Grace - ")?;
        equal("no surroundings", hub.surroundings("", &Context::new())?, "- - - ")
    });
    suite.case("hub/implicit", || {
        let object = hub.as_object();
        equal("is a hub", object.is_a(Hub::REPOSITORY_ID)?, true)?;
        equal("is an object", object.is_a("IDL:omg.org/CORBA/Object:1.0")?, true)?;
        equal("is a node", object.is_a(Node::REPOSITORY_ID)?, false)?;
        equal("is gone", object.non_existent()?, false)
    });
}
