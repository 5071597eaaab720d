//! Streams, modules and tasks of `svc.conf` directives.

use std::sync::mpsc;
use std::time::Duration;

use spandrel_configurator::{Catalogue, Configurator};
use spandrel_reactor::Reactor;
use spandrel_test_support::wait_until;

use super::Tracing;
use crate::{
    Asynchronous, ConfiguredStream, Context, Message, Module, PutError, Service, StreamDirectives, Synchronous,
    TaskService, Wait, module_factory,
};

/// Sends messages back up, with its argument in front.
struct Mirror(String);

impl Service for Mirror {
    fn process(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
        if let Some(block) = message.block_mut() {
            *block = [self.0.as_bytes(), block].concat()[..].into();
        }
        context.reply(message)
    }
}

/// Gives messages to a test, from a thread of its own.
struct Sink(mpsc::Sender<Vec<u8>>);

impl Service for Sink {
    fn process(&self, _: &Context<'_>, message: Message) -> Result<(), PutError> {
        _ = self.0.send(message.block().map(|block| block.to_vec()).unwrap_or_default());
        Ok(())
    }
}

fn configurator() -> (Configurator, Reactor, mpsc::Receiver<Vec<u8>>) {
    let (sender, receiver) = mpsc::channel();
    let catalogue = Catalogue::new()
        .module(
            "Mirror",
            module_factory(|context, arguments| {
                Ok(Module::writer(context.name(), Asynchronous::new(Mirror(arguments.join(" ")))))
            }),
        )
        .module(
            "Upper",
            module_factory(|context, _| Ok(Module::new(context.name(), Synchronous(Tracing), Synchronous(Tracing)))),
        )
        .module(
            "Lower",
            module_factory(|context, _| Ok(Module::new(context.name(), Synchronous(Tracing), Synchronous(Tracing)))),
        )
        .module("Broken", module_factory(|_, _| Err("it cannot be made".into())))
        .stream("Made", || ConfiguredStream::new("Made"))
        .service("Sink", move || {
            let sender = sender.clone();
            TaskService::new(move |_, _| Ok(Asynchronous::new(Sink(sender.clone()))))
        });
    let reactor = Reactor::new().unwrap();
    (Configurator::new(reactor.registry(), catalogue).streams(StreamDirectives), reactor, receiver)
}

fn stream(configurator: &Configurator, name: &str) -> std::sync::Arc<ConfiguredStream> {
    configurator.repository().find(name).unwrap()
}

/// Sends a message down; returns the one that comes up.
fn exchange(stream: &ConfiguredStream, text: &str) -> Message {
    let message = Message::data(text.as_bytes().into()).with_control(super::Trace::default());
    stream.stream().put(message, Wait::Forever).unwrap();
    stream.stream().get(Wait::For(super::LONG)).unwrap()
}

fn text(message: &Message) -> String {
    message.block().unwrap().links().map(|link| String::from_utf8_lossy(link).into_owned()).collect()
}

#[test]
fn a_directive_makes_a_stream_of_modules() {
    let (configurator, ..) = configurator();
    configurator.process_text("stream static S { static Mirror 'a b' static Upper }").unwrap();
    let stream = stream(&configurator, "S");
    assert_eq!(configurator.repository().info("S").unwrap(), "stream head | Upper | Mirror | tail");
    let message = exchange(&stream, "x");
    assert_eq!((text(&message).as_str(), super::trace_of(&message).as_str()), ("a bx", "-Upper +Upper"));
    configurator.process_text("stream static Made { static Mirror }").unwrap();
    assert_eq!(configurator.close(), Vec::<String>::new());
}

#[test]
fn modules_change_while_the_stream_stays() {
    let (configurator, ..) = configurator();
    configurator.process_text("stream static S { static Mirror '1' static Upper }").unwrap();
    let stream = stream(&configurator, "S");
    let changes = configurator.process_text("stream S { static Lower remove Upper static Mirror '2' }").unwrap();
    assert_eq!(changes.to_string(), "changed the modules of S");
    assert_eq!(stream.stream().modules(), ["head", "Lower", "Mirror", "tail"]);
    assert_eq!(text(&exchange(&stream, "x")), "2x");

    let error = configurator.process_text("stream S { remove Lower static Broken }").unwrap_err().to_string();
    assert_eq!(error, "directive, column 1: the service `S`: the module `Broken`: it cannot be made");
    assert_eq!(stream.stream().modules(), ["head", "Lower", "Mirror", "tail"], "as before");
    let error = configurator.process_text("stream S { remove Nothing }").unwrap_err().to_string();
    let expected = "there is no module `Nothing` in the stream `S`; its modules are `Lower`, `Mirror`";
    assert_eq!(error, format!("directive, column 12: {expected}"));
}

#[test]
fn a_module_or_the_stream_can_be_suspended() {
    let (configurator, ..) = configurator();
    configurator.process_text("stream static S { static Mirror suspend Mirror }").unwrap();
    let stream = stream(&configurator, "S");
    stream.stream().put(Message::data(b"x".into()), Wait::Forever).unwrap();
    assert!(stream.stream().get(Wait::For(Duration::from_millis(30))).is_err());
    configurator.process_text("stream S { resume Mirror }").unwrap();
    assert_eq!(text(&stream.stream().get(Wait::For(super::LONG)).unwrap()), "x");
    configurator.process_text("suspend S").unwrap();
    assert!(stream.stream().put(Message::data(b"x".into()), Wait::Never).is_err());
    configurator.process_text("resume S").unwrap();
    assert_eq!(text(&exchange(&stream, "y")), "y");
}

#[test]
fn a_wrong_stream_is_refused() {
    let (configurator, ..) = configurator();
    for (directive, reason) in [
        ("static Mirror", "the module `Mirror` belongs between the braces of a `stream`"),
        ("stream static S { static Sink }", "`Sink` is a Service_Object, no Module"),
        ("stream static Sink", "`Sink` is a Service_Object, no STREAM"),
        ("stream static S 'x'", "the service `S`: a stream without a factory takes no parameters"),
        ("stream static S { static Broken }", "the service `S`: the module `Broken`: it cannot be made"),
    ] {
        let error = configurator.process_text(directive).unwrap_err().to_string();
        assert!(error.ends_with(reason), "{error}");
    }
    assert!(configurator.repository().is_empty());
}

#[test]
fn a_task_is_a_service() {
    let (configurator, _reactor, receiver) = configurator();
    configurator.process_text("static Sink\nsuspend Sink").unwrap();
    assert_eq!(configurator.repository().info("Sink").unwrap(), "task Sink");
    configurator.process_text("resume Sink").unwrap();
    configurator.remove("Sink").unwrap();
    drop((configurator, _reactor));
    assert!(receiver.recv().is_err(), "the task is gone");
}

/// Builds the library of `net/configurator/tests/plugin/ticks.c` as `librot.so`.
#[cfg(target_os = "linux")]
fn library_in_c(folder: &std::path::Path) {
    let configurator_folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../configurator");
    let status = std::process::Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-DVERSION=\"1\"", "-shared", "-fPIC", "-I"])
        .args([configurator_folder.join("include"), "-o".into(), folder.join("librot.so")])
        .arg(configurator_folder.join("tests/plugin/ticks.c"))
        .status()
        .expect("a C compiler (cc)");
    assert!(status.success());
}

#[cfg(target_os = "linux")]
#[test]
fn the_thread_of_a_module_of_a_library_brings_messages_in() {
    let folder = tempfile::tempdir().unwrap();
    library_in_c(folder.path());
    let (configurator, ..) = configurator();
    let library = folder.path().display();
    configurator
        .process_text(&format!(
            "stream static S {{ dynamic Numbers Module * {library}/rot:numbers_module static Upper }}"
        ))
        .unwrap();
    let stream = stream(&configurator, "S");
    let next = || text(&stream.stream().get(Wait::For(super::LONG)).unwrap());
    assert_eq!([next(), next(), next()], ["1", "2", "3"]);
    configurator.process_text("stream S { suspend Numbers }").unwrap();
    // What was on its way still comes; then nothing more, and the number after it later.
    let mut last = 3;
    while let Ok(message) = stream.stream().get(Wait::For(Duration::from_millis(100))) {
        last += 1;
        assert_eq!(text(&message), last.to_string());
    }
    configurator.process_text("stream S { resume Numbers }").unwrap();
    assert_eq!(next(), (last + 1).to_string());
    // Removed while its thread sends, and with the stream.
    configurator.process_text("stream S { remove Numbers }").unwrap();
    assert_eq!(stream.stream().modules(), ["head", "Upper", "tail"]);
    configurator
        .process_text(&format!("stream S {{ dynamic Numbers Module * {library}/rot:numbers_module }}"))
        .unwrap();
    drop(stream);
    configurator.process_text("remove S").unwrap();
    wait_until("the library to be unmapped", || configurator.repository().kept_libraries().is_empty());
}

/// Modules of libraries: that of `net/configurator/tests/plugin/ticks.c`.
#[cfg(target_os = "linux")]
#[test]
fn modules_of_libraries_pass_messages() {
    let folder = tempfile::tempdir().unwrap();
    library_in_c(folder.path());
    let (configurator, ..) = configurator();
    let directive = format!(
        "stream static S {{ static Mirror '>' dynamic Rot Module * {}/rot:rot13_module static Upper }}",
        folder.path().display()
    );
    configurator.process_text(&directive).unwrap();
    let stream = stream(&configurator, "S");
    let mut message = Message::data(b"Hello, ".into());
    message.block_mut().unwrap().append(b"World".into());
    stream.stream().put(message.with_control(super::Trace::default()), Wait::Forever).unwrap();
    let message = stream.stream().get(Wait::For(super::LONG)).unwrap();
    assert_eq!(text(&message), ">Hello, World", "there and back");
    configurator.process_text("stream S { remove Rot }").unwrap();
    assert_eq!(stream.stream().modules(), ["head", "Upper", "Mirror", "tail"]);
    // The thread that has removed the module may still hold it for a moment.
    wait_until("the library to be unmapped", || configurator.repository().kept_libraries().is_empty());
}
