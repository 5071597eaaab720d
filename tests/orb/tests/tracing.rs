//! Spans of calls and requests, and the events inside of them.

use spandrel_test_support::alone;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use spandrel::Orb;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{block_on, comes},
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, Registry, layer::Context, prelude::*, registry::LookupSpan};

/// What was said of one span, and the messages inside of it.
#[derive(Clone, Debug, Default)]
struct Seen {
    target: String,
    fields: HashMap<String, String>,
    events: Vec<String>,
    has_ended: bool,
}

impl Seen {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

/// Remembers all spans of this process, in the order of their beginnings.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<(u64, Seen)>>>);

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Watcher {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, _: Context<'_, S>) {
        let mut seen = Seen { target: attributes.metadata().target().to_owned(), ..Seen::default() };
        attributes.record(&mut seen);
        self.0.lock().unwrap().push((id.into_u64(), seen));
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
        self.with(id, |seen| values.record(seen));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut message = Seen::default();
        event.record(&mut message);
        if let Some(span) = context.event_span(event) {
            self.with(&span.id(), |seen| seen.events.push(message.field("message").to_owned()));
        }
    }

    fn on_close(&self, id: span::Id, _: Context<'_, S>) {
        self.with(&id, |seen| seen.has_ended = true);
    }
}

impl Watcher {
    /// The one of this process.
    fn get() -> &'static Self {
        static WATCHER: OnceLock<Watcher> = OnceLock::new();
        WATCHER.get_or_init(|| {
            let watcher = Self::default();
            let filter = tracing_subscriber::EnvFilter::new("debug");
            tracing::subscriber::set_global_default(Registry::default().with(watcher.clone().with_filter(filter)))
                .unwrap();
            watcher
        })
    }

    fn with(&self, id: &span::Id, then: impl FnOnce(&mut Seen)) {
        let mut seen = self.0.lock().unwrap();
        // Ids are used again, once their spans have ended.
        if let Some((_, seen)) = seen.iter_mut().rev().find(|(known, _)| *known == id.into_u64()) {
            then(seen);
        }
    }

    /// Spans of calls or requests over this connection.
    fn of(&self, target: &str, connection: &str) -> Vec<Seen> {
        let seen = self.0.lock().unwrap();
        let is_of = |seen: &&Seen| seen.target == target && seen.field("connection") == connection;
        seen.iter().map(|(_, seen)| seen).filter(is_of).cloned().collect()
    }
}

fn client_of(server: &Server) -> (String, Target) {
    let orb = Orb::builder().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    (format!("iiop://127.0.0.1:{}", server.port()), target)
}

#[test]
fn a_call_has_a_span_with_what_identifies_it() {
    alone(|| {
        let (watcher, server) = (Watcher::get(), Server::start());
        let (place, target) = client_of(&server);
        target.ping().unwrap();
        target.refuse(1).unwrap_err();
        let calls = watcher.of("spandrel::call", &place);
        assert_eq!(calls.len(), 2);
        let [ping, refuse] = [&calls[0], &calls[1]];
        assert_eq!((ping.field("operation"), ping.field("outcome")), ("ping", "ok"));
        assert_eq!(ping.field("interface"), "IDL:Probe/Target:1.0");
        assert!(!ping.field("object").is_empty() && ping.field("object").is_ascii());
        assert_eq!((refuse.field("operation"), refuse.field("outcome")), ("refuse", "user_exception"));
        let ids = [ping, refuse].map(|call| call.field("request_id").parse::<u32>().unwrap());
        assert_ne!(ids[0], ids[1]);
        assert!(ping.has_ended && ping.events.iter().any(|event| event == "ended"));
    });
}

/// The request's span whose call has this one.
fn request_of(watcher: &Watcher, operation: &str, ids: &dyn Fn(&Seen) -> bool) -> Option<Seen> {
    let seen = watcher.0.lock().unwrap();
    let is_it = |seen: &&Seen| seen.target == "spandrel::request" && seen.field("operation") == operation && ids(seen);
    seen.iter().map(|(_, seen)| seen).find(is_it).cloned()
}

#[test]
fn a_request_has_a_span_in_which_its_servant_runs() {
    alone(|| {
        let (watcher, server) = (Watcher::get(), Server::start());
        let (place, target) = client_of(&server);
        target.fail(77).unwrap_err();
        let call = &watcher.of("spandrel::call", &place)[0];
        assert_eq!(call.field("outcome"), "BAD_PARAM");
        let is_its = |seen: &Seen| seen.field("object") == call.field("object") && seen.has_ended;
        comes("the request's end", || request_of(watcher, "fail", &is_its).is_some());
        let request = request_of(watcher, "fail", &is_its).unwrap();
        assert_eq!(request.field("request_id"), call.field("request_id"));
        assert_eq!(request.field("interface"), "IDL:Probe/Target:1.0");
        assert_eq!(request.field("outcome"), "BAD_PARAM");
        assert!(request.field("connection").starts_with("iiop://127.0.0.1:"));
    });
}

#[test]
fn events_of_servants_carry_their_request() {
    alone(|| {
        let (watcher, server) = (Watcher::get(), Server::start());
        let (_, target) = client_of(&server);
        target.panic().unwrap_err();
        let said = |seen: &Seen| seen.events.iter().any(|event| event == "a servant panicked");
        comes("the event", || request_of(watcher, "panic", &said).is_some());
    });
}

#[test]
fn asynchronous_calls_have_theirs() {
    alone(|| {
        let (watcher, server) = (Watcher::get(), Server::start());
        let (place, target) = client_of(&server);
        assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
        let calls = watcher.of("spandrel::call", &place);
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].field("operation"), calls[0].field("outcome")), ("add", "ok"));
    });
}
