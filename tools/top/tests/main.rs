//! `spandrel top` beside a running process.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use spandrel::net::reactor::Reactor;
use spandrel_configurator::{Catalogue, Configurator};
use spandrel_serve::{Administered, OrbService, catalogue};
use spandrel_stream::{
    Asynchronous, ConfiguredStream, Context, HEAD, Message, Module, PassThrough, PutError, Query, Service,
    StreamDirectives, Task, Wait, WaterMarks, module_factory,
};
use spandrel_test_support::{check_output_errors, wait_until};
use spandrel_top::{OrbRow, Rows, Sample, Source, TaskRow, View, text};

/// Takes all messages, in a thread of its own.
struct Taking;

impl Service for Taking {
    fn process(&self, _: &Context<'_>, message: Message) -> Result<(), PutError> {
        drop(message);
        Ok(())
    }
}

/// Queues messages, and takes none.
struct Stuck;

impl Task for Stuck {
    fn put(&self, context: &Context<'_>, message: Message) -> Result<(), PutError> {
        context.putq(message)
    }
}

/// A process with streams, an ORB and the administration.
struct Process {
    configurator: Configurator,
    reactor: Reactor,
    folder: tempfile::TempDir,
}

impl Process {
    fn new() -> Self {
        let administered = Administered::default();
        let reactor = Reactor::new().unwrap();
        let catalogue: Catalogue = catalogue(&administered)
            .module("Quiet", module_factory(|context, _| Ok(Module::writer(context.name(), PassThrough))))
            .module(
                "Queued",
                module_factory(|context, _| {
                    let module = Module::writer(context.name(), Asynchronous::new(Taking));
                    Ok(module.water_marks(WaterMarks::new(100, 50)))
                }),
            );
        let configurator = Configurator::new(reactor.registry(), catalogue).streams(StreamDirectives);
        administered.set(&configurator);
        let running = reactor.clone();
        std::thread::spawn(move || running.run().unwrap());
        Self { configurator, reactor, folder: tempfile::tempdir().unwrap() }
    }

    fn process(&self, directives: &str) {
        self.configurator.process_text(directives).unwrap();
    }

    /// The address of the service `Metrics`.
    fn metrics(&self) -> Source {
        self.process("static Metrics \"-p 0\"");
        let info = self.configurator.repository().info("Metrics").unwrap();
        info.split(' ').next().unwrap().parse().unwrap()
    }

    fn stream(&self, name: &str) -> spandrel_sync::Arc<ConfiguredStream> {
        self.configurator.repository().find(name).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.configurator.close();
        self.reactor.close();
    }
}

fn sample(source: &Source) -> Sample {
    Sample::new(&source.read().unwrap(), Instant::now())
}

fn task<'r>(rows: &'r Rows, module: &str, side: &str) -> &'r TaskRow {
    let mut tasks = rows.tasks.iter();
    tasks.find(|row| row.module == module && row.side == side).unwrap()
}

/// The screen as text.
fn screen(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_stopped_module_shows_its_queue_and_flow_control() {
    let process = Process::new();
    process.process("stream static Log { static Queued static Quiet }");
    let (source, log) = (process.metrics(), process.stream("Log"));
    let before = sample(&source);
    let put = |wait| log.stream().put(Message::data((&[7; 40]).into()), wait);
    for _ in 0..10 {
        put(Wait::Forever).unwrap();
    }
    wait_until("the queue is empty", || task(&Rows::new(None, &sample(&source)), "Queued", "writer").messages == 0);
    log.stream().control(Some("Queued"), Query::Stop, None, Duration::from_secs(5)).unwrap();
    for _ in 0..3 {
        put(Wait::Forever).unwrap();
    }
    put(Wait::Never).unwrap_err();

    let rows = Rows::new(Some(&before), &sample(&source));
    let queued = task(&rows, "Queued", "writer");
    assert_eq!((queued.messages, queued.octets, queued.high, queued.flow), (3, 120, 100, "stopped"));
    assert_eq!((queued.threads, queued.stream.as_str()), (1, "Log"));
    assert!(queued.rate.unwrap() > 0.0, "{queued:?}");
    // The module above passes messages on in the caller's thread; a message that its successor refuses was received, too.
    assert_eq!((task(&rows, "Quiet", "writer").threads, task(&rows, "Quiet", "writer").flow), (0, "open"));
    let received = |text: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with("spandrel_stream_messages_total"));
        let line = lines.find(|line| line.contains("\"Quiet\"") && line.contains("writer")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    // The query that stopped it passed here, too.
    assert_eq!(received(&source.read().unwrap()), 15.0);
    let modules: Vec<&str> = rows.tasks.iter().step_by(2).map(|row| row.module.as_str()).collect();
    assert_eq!(modules, [HEAD, "Quiet", "Queued", "tail"]);
    log.stream().control(Some("Queued"), Query::Start, None, Duration::from_secs(5)).unwrap();

    let view = View { source: source.to_string(), interval: 1.0, rows, ..View::default() };
    let shown = screen(&view, 130, 20);
    let line = shown.lines().find(|line| line.contains("Queued  writer")).unwrap();
    assert!(line.contains("stopped") && line.contains("██████████ 120 %"), "{line}");
    assert!(shown.contains("spandrel top   http://127.0.0.1:"), "{shown}");
    assert!(screen(&View { error: Some("gone".to_owned()), ..View::default() }, 40, 5).contains("gone"));

    // Each column can be seen in a terminal of 80 columns.
    let mut view = view;
    let narrow = screen(&view, 80, 20);
    assert!(!narrow.contains("waiting") && narrow.contains("← → more columns"), "{narrow}");
    view.scroll_sideways(5);
    let right = screen(&view, 80, 20);
    assert!(right.contains("lock waits/s  waiting") && right.contains("threads"), "{right}");
    view.scroll_sideways(-100);
    assert_eq!(screen(&view, 80, 20), narrow);
    assert!(!shown.contains("more columns"), "{shown}");

    // The numbers of a process that does not answer are old, and its rates not known.
    view.error = Some("cannot read http://127.0.0.1:9464/metrics: Connection refused".to_owned());
    view.rows = Rows::new(None, &sample(&source));
    let old = screen(&view, 80, 20);
    assert!(old.contains("no answer: cannot read http://127.0.0.1:9464/metrics: Connection refused"), "{old}");
    assert!(old.contains("Streams   of the last answer"), "{old}");
}

#[test]
fn flow_control_and_suspension_are_shown() {
    let process = Process::new();
    process.process("stream static Log { static Quiet }");
    let source = process.metrics();
    let log = process.stream("Log");
    log.stream().push(Module::writer("Stuck", Stuck).water_marks(WaterMarks::new(10, 5))).unwrap();
    log.stream().put(Message::data((&[1; 10]).into()), Wait::Never).unwrap();
    let flow = || Rows::new(None, &sample(&source)).tasks.iter().map(|row| row.flow).collect::<Vec<_>>();
    assert_eq!(flow(), ["open", "open", "full", "open", "open", "open", "open", "open"]);
    log.stream().suspend();
    assert_eq!(flow(), ["stopped"; 8]);
    log.stream().resume();
}

#[test]
fn orbs_have_their_connections_and_request_rates() {
    let process = Process::new();
    process.process("static ORB \"-ORBListenEndpoints iiop://127.0.0.1:0 -ORBMetrics yes\"");
    let socket = process.folder.path().join("admin");
    let administration = if cfg!(unix) {
        format!("static Administration \"-o ORB -u {}\"", socket.display())
    } else {
        "static Administration \"-o ORB\"".to_owned()
    };
    process.process(&administration);
    let source = process.metrics();
    let orb: spandrel_sync::Arc<OrbService> = process.configurator.repository().find("ORB").unwrap();
    let address = orb.orb().unwrap().listen().unwrap().pop().unwrap();
    let client = spandrel::Orb::builder().build().unwrap();
    let object = client
        .string_to_object(&format!("corbaloc::{}:{}/{}", address.0, address.1, spandrel_serve::remote::KEY))
        .unwrap();
    object.non_existent().unwrap();
    let before = sample(&source);
    for _ in 0..100 {
        assert!(!object.non_existent().unwrap());
    }
    let now = sample(&source);
    let rows = Rows::new(Some(&before), &now);
    let [OrbRow { name, server_connections, requests, median, p99, failures, is_measured, .. }] = &rows.orbs[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((name.as_str(), *is_measured, *failures), ("ORB", true, Some(0.0)));
    assert!(requests.unwrap() > 0.0 && median.unwrap() > 0.0 && p99 >= median, "{rows:?}");
    assert_eq!(*server_connections, rows.connections.len() as u64);
    assert_eq!(rows.connections[0].side, "server");
    assert!(rows.connections[0].rate.unwrap() > 0.0);
    let names: Vec<&str> = rows.services.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["ORB", "Administration", "Metrics"]);
    #[cfg(unix)]
    {
        // The administration tells the same.
        let rows = Rows::new(None, &sample(&Source::Socket(socket)));
        assert_eq!((rows.orbs.len(), rows.services.len(), rows.orbs[0].requests), (1, 3, None));
    }
    assert!(text(&rows).contains("accepted  made  requests/s"), "{}", text(&rows));
    drop(client);
}

#[test]
fn the_executable_prints_one_interval() {
    let process = Process::new();
    process.process("static Echo \"-p 0\"");
    process.process("static Transfer \"-p 0 -a reactive\"");
    process.process("stream static Log { static Quiet }");
    let source = process.metrics();
    let top = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_spandrel-top")).args(arguments).output().unwrap();
        let texts = [done.stdout, done.stderr].map(|octets| String::from_utf8(octets).unwrap());
        (done.status.code().unwrap(), texts)
    };
    let (code, [shown, errors]) = top(&[&source.to_string(), "--once", "-i", "0.1"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let line = |start: &str| shown.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{shown}"));
    assert!(line("Echo").contains("Service_Object  active") && line("Echo").ends_with('0'), "{shown}");
    assert!(line("Transfer").contains("Service_Object  active") && line("Transfer").ends_with('0'), "{shown}");
    assert!(line("Log     Quiet   writer").contains("open"), "{shown}");

    let free = SocketAddr::from(([127, 0, 0, 1], 1));
    let (code, [_, errors]) = top(&[&free.to_string(), "--once"]);
    assert_eq!(code, 1);
    assert!(errors.starts_with("error: cannot read http://127.0.0.1:1/metrics: "), "{errors}");
    assert_eq!(top(&[]).0, 2);
    assert_eq!(top(&["localhost"]).0, 2);
    let (code, [_, errors]) = top(&[&source.to_string()]);
    assert_eq!((code, errors.as_str()), (1, "error: the output is no terminal; --once prints text\n"));
}

#[test]
fn a_counter_that_begins_again_has_no_negative_rate() {
    let then = Instant::now();
    let now = then + Duration::from_secs(2);
    let text = |messages: u64, octets: u64| {
        format!(
            "spandrel_stream_module_stopped{{service=\"s\",module=\"m\"}} 0\n\
             spandrel_stream_messages_total{{service=\"s\",module=\"m\",side=\"writer\"}} {messages}\n\
             spandrel_stream_queue_octets{{service=\"s\",module=\"m\",side=\"writer\"}} {octets}\n"
        )
    };
    let rate = |before: u64, after: u64| {
        let (before, after) = (Sample::new(&text(before, 1), then), Sample::new(&text(after, 1), now));
        task(&Rows::new(Some(&before), &after), "m", "writer").rate
    };
    assert_eq!((rate(10, 30), rate(30, 10)), (Some(10.0), Some(5.0)));
    let rows = Rows::new(None, &Sample::new("no metrics\n{}\n", then));
    assert_eq!(spandrel_top::text(&rows), "");
}

/// The channel with the longest queue is the first, with its rates since the sample before.
#[test]
fn channels_have_their_rates_queues_and_lag() {
    let then = Instant::now();
    let text = |received: u64, dropped: u64, queue: u64| {
        format!(
            "spandrel_event_consumers{{channel=\"Alarms\"}} 3\n\
             spandrel_event_suppliers{{channel=\"Alarms\"}} 1\n\
             spandrel_events_received_total{{channel=\"Alarms\"}} {received}\n\
             spandrel_events_delivered_total{{channel=\"Alarms\"}} {}\n\
             spandrel_events_dropped_total{{channel=\"Alarms\"}} {dropped}\n\
             spandrel_event_queue_length{{channel=\"Alarms\"}} {queue}\n\
             spandrel_event_lag_milliseconds{{channel=\"Alarms\"}} 1500\n\
             spandrel_notification_consumers{{channel=\"1\"}} 2\n\
             spandrel_notifications_dropped_total{{channel=\"1\"}} {dropped}\n\
             spandrel_notifications_expired_total{{channel=\"1\"}} {received}\n\
             spandrel_notification_queue_length{{channel=\"1\"}} 9\n",
            3 * received
        )
    };
    let before = Sample::new(&text(10, 0, 4), then);
    let now = Sample::new(&text(30, 4, 7), then + Duration::from_secs(2));
    let rows = Rows::new(Some(&before), &now);
    let [numbered, named] = &rows.channels[..] else { panic!("{rows:?}") };
    assert_eq!((&*numbered.name, numbered.queued, numbered.lost), ("1", 9, Some(12.0)));
    assert_eq!((&*named.name, named.consumers, named.suppliers, named.queued), ("Alarms", 3, 1, 7));
    assert_eq!((named.received, named.delivered, named.lost), (Some(10.0), Some(30.0), Some(2.0)));
    let view = View { rows, ..View::default() };
    let shown = screen(&view, 100, 20);
    let line = shown.lines().find(|line| line.contains("Alarms")).unwrap_or_else(|| panic!("{shown}"));
    let cells: Vec<&str> = line.trim_matches('"').split_whitespace().collect();
    assert_eq!(cells, ["Alarms", "3", "1", "10", "30", "2", "7", "1.5", "s"], "{shown}");
}

#[test]
fn scrolling_stays_within_the_lines() {
    let mut view = View::default();
    view.scroll(10);
    assert!(view.offset <= 1);
    view.scroll(-100);
    assert_eq!(view.offset, 0);
    assert!(screen(&view, 70, 6).contains("No streams, channels, services or ORBs"));
    // A terminal that is too small shows less, and nothing fails.
    for size in 1..8 {
        screen(&view, size, size);
    }
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for words in [["--help"], ["--version"]] {
        check_output_errors(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-top"));
            command.args(words);
            command
        });
    }
}
