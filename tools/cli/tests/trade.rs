//! `spandrel trade` against our trader.

use std::process::Output;

use serde_json::{Value, json};
use spandrel::{Endpoint, ObjectRef, Orb};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_trading::{LOOKUP_KEY, TradingOptions, TradingService};

use crate::support::{check_code, check_width, spandrel, stderr, stdout};

/// A trader in this process.
struct Trader {
    orb: Orb,
    service: Option<TradingService>,
    url: String,
    /// An object to export, which no server has.
    object: ObjectRef,
}

impl Trader {
    fn start() -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let service = TradingService::start(&orb, TradingOptions::default()).unwrap();
        let (host, port) = orb.listen().unwrap().remove(0);
        let object = orb.string_to_object("corbaloc::printer.example:2000/laser").unwrap();
        Self { orb, service: Some(service), url: format!("corbaloc::{host}:{port}/{LOOKUP_KEY}"), object }
    }

    /// A trader with printers: laser (ppm 35, queue 7), ink (ppm 5, queue 1) and colour (ppm 21, queue 2).
    fn with_printers() -> Self {
        let trader = Self::start();
        let properties = ["mandatory string name", "unsigned short ppm", "long queue", "sequence<string> features"];
        trader.ok(&[&["types", "add", "Printer"], &properties[..]].concat());
        trader.ok(&["types", "add", "ColourPrinter", "--base", "Printer", "readonly boolean toner"]);
        for (kind, words) in [
            ("Printer", ["name=laser", "ppm=35", "queue=7", "features=[\"duplex\"]"]),
            ("Printer", ["name=ink", "ppm=5", "queue=1", "features=[]"]),
            ("ColourPrinter", ["name=colour", "ppm=21", "queue=2", "toner=true"]),
        ] {
            let id = trader.ok(&[&["export", kind, &trader.object.to_string()], &words[..]].concat());
            assert_eq!(id.lines().count(), 1, "{id}");
        }
        trader
    }

    fn run(&self, words: &[&str]) -> Output {
        // Subcommands have two words in some groups.
        spandrel(&[&["trade"], words, &["--at", &self.url]].concat())
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        check_code(&output, 0);
        stdout(&output)
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[words, &["--json"]].concat())).unwrap()
    }

    #[track_caller]
    fn fails(&self, words: &[&str]) -> String {
        let output = self.run(words);
        check_code(&output, 1);
        stderr(&output)
    }
}

impl Drop for Trader {
    fn drop(&mut self) {
        self.service.take().map(TradingService::stop);
        _ = self.orb.shutdown();
    }
}

#[test]
fn offers_are_found_by_constraint_and_preference() {
    let trader = Trader::with_printers();
    let table = trader.ok(&["query", "Printer", "ppm > 20", "--prefer", "min queue"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("name") && lines[0].ends_with("OBJECT"), "{table}");
    assert!(lines[1].contains("colour") && lines[2].contains("laser"), "{table}");
    assert!(lines[1].ends_with("at printer.example:2000"), "{table}");
    check_width(&table);

    let names = |words: &[&str]| -> Vec<String> {
        let offers = trader.json(&[&["query", "Printer"], words].concat());
        let names =
            offers.as_array().unwrap().iter().map(|offer| offer["properties"]["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    assert_eq!(names(&["", "--prefer", "max ppm"]), ["laser", "colour", "ink"]);
    assert_eq!(names(&["'duplex' in features"]), ["laser"]);
    assert_eq!(names(&["", "--prefer", "min queue", "--how-many", "2"]), ["ink", "colour"]);
    assert_eq!(names(&["ppm < 22", "--prefer", "min queue", "--policy", "exact_type_match=true"]), ["ink"]);
    let offers = trader.json(&["query", "Printer", "queue == 2", "--property", "ppm"]);
    assert_eq!(offers, json!([{"reference": trader.object.to_string(), "properties": {"ppm": 21}}]));
    assert_eq!(trader.ok(&["query", "Printer", "ppm < 6", "--references"]), format!("{}\n", trader.object));
    assert_eq!(trader.ok(&["query", "Printer", "ppm > 100"]), "");
}

#[test]
fn a_cut_result_is_remarked() {
    let trader = Trader::with_printers();
    let output = trader.run(&["query", "Printer", "--how-many", "1"]);
    check_code(&output, 0);
    assert!(stderr(&output).contains("there are further offers: --how-many is 1"), "{}", stderr(&output));
    let output = trader.run(&["query", "Printer", "queue >= 0", "--policy", "search_card=1"]);
    check_code(&output, 0);
    assert!(stderr(&output).contains("limits of the trader were applied: search_card"), "{}", stderr(&output));
}

#[test]
fn offers_are_modified_described_and_withdrawn() {
    let trader = Trader::with_printers();
    let reference = trader.object.to_string();
    let id = trader.json(&["export", "Printer", &reference, "name=new", "room=string \"4.12\""])["exported"].clone();
    let id = id.as_str().unwrap();
    assert_eq!(trader.ok(&["modify", id, "queue=3", "--delete", "room"]), "");
    let described = trader.json(&["describe", id]);
    let properties = json!({"name": "new", "queue": 3});
    assert_eq!(described, json!({"id": id, "type": "Printer", "reference": reference, "properties": properties}));
    let table = trader.ok(&["describe", id]);
    assert!(table.starts_with("type    Printer\n") && table.contains("name    \"new\"\n"), "{table}");
    assert_eq!(trader.json(&["withdraw", id]), json!({"withdrawn": [id]}));
    let error = trader.fails(&["withdraw", id]);
    assert!(error.contains("cannot withdraw the offer") && error.contains("UnknownOfferId"), "{error}");
    trader.ok(&["withdraw", "--matching", "Printer", "ppm < 30"]);
    assert_eq!(trader.json(&["query", "Printer"]).as_array().unwrap().len(), 1);
    let attributes = trader.json(&["describe"]);
    assert_eq!(
        (&attributes["def_follow_policy"], &attributes["supports_dynamic_properties"]),
        (&json!("if_no_local"), &json!(true))
    );
    assert!(trader.ok(&["describe"]).lines().any(|line| line.starts_with("max_hop_count ")));
}

#[test]
fn service_types_are_managed() {
    let trader = Trader::with_printers();
    assert_eq!(trader.ok(&["types", "list"]), "ColourPrinter\nPrinter\n");
    let described = trader.json(&["types", "describe", "ColourPrinter"]);
    assert_eq!((&described["bases"], &described["masked"]), (&json!(["Printer"]), &json!(false)));
    let toner = json!({"name": "toner", "mode": "readonly", "type": "boolean"});
    assert!(described["properties"].as_array().unwrap().contains(&toner), "{described}");
    let table = trader.ok(&["types", "describe", "Printer"]);
    assert!(table.contains("name      mandatory  string\n"), "{table}");
    trader.ok(&["types", "mask", "ColourPrinter"]);
    assert!(trader.ok(&["types", "describe", "ColourPrinter"]).contains("masked"));
    trader.ok(&["types", "unmask", "ColourPrinter"]);
    assert!(trader.fails(&["types", "remove", "Printer"]).contains("HasSubTypes"));
    trader.ok(&["types", "remove", "ColourPrinter"]);
    assert_eq!(trader.json(&["types", "list"]), json!(["Printer"]));
}

#[test]
fn links_are_managed_and_followed() {
    let (trader, branch) = (Trader::start(), Trader::with_printers());
    trader.ok(&["types", "add", "Printer"]);
    assert_eq!(trader.ok(&["links", "list"]), "");
    trader.ok(&["links", "add", "branch", &branch.url]);
    let table = trader.ok(&["links", "list"]);
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("branch  if_no_local  always  ")), "{table}");
    assert_eq!(trader.json(&["query", "Printer"]).as_array().unwrap().len(), 3);
    assert_eq!(trader.json(&["query", "Printer", "--policy", "hop_count=0"]), json!([]));
    trader.ok(&["links", "modify", "branch", "--default", "local_only", "--limit", "local_only"]);
    assert_eq!(trader.json(&["links", "list"])[0]["limit"], "local_only");
    assert_eq!(trader.json(&["query", "Printer"]), json!([]));
    assert!(trader.fails(&["links", "add", "branch", &branch.url]).contains("DuplicateLinkName"));
    trader.ok(&["links", "remove", "branch"]);
    assert!(trader.fails(&["links", "remove", "branch"]).contains("UnknownLinkName"));
}

#[test]
fn mistakes_are_explained() {
    let trader = Trader::with_printers();
    let error = trader.fails(&["query", "Printer", "ppm >"]);
    assert!(
        error.contains("cannot query offers of the type `Printer`") && error.contains("IllegalConstraint"),
        "{error}"
    );
    let error = trader.fails(&["export", "Printr", &trader.object.to_string(), "name=x"]);
    assert!(error.contains("the service type `Printr`: did you mean `Printer`?"), "{error}");
    let error = trader.fails(&["export", "Printer", &trader.object.to_string(), "nam=x"]);
    assert!(error.contains("the service type has no property `nam`: did you mean `name`?"), "{error}");
    let error = trader.fails(&["export", "Printer", &trader.object.to_string(), "name=x", "ppm=many"]);
    assert!(error.contains("invalid value for the property `ppm`"), "{error}");
    for words in [
        &["query", "Printer", "--policy", "hop_count=many"][..],
        &["export", "Printer", "corbaloc::127.0.0.1:1/x", "name"],
        &["types", "add", "X", "string"],
        &["links", "add", "x", "corbaloc::127.0.0.1:1/x", "--limit", "never"],
    ] {
        check_code(&trader.run(words), 2);
    }
    let error = stderr(&trader.run(&["query", "Printer", "--policy", "hop_cont=1"]));
    assert!(error.contains("it is no standard policy: did you mean `hop_count`?"), "{error}");
}

#[test]
fn a_name_is_bound_and_offered_by_one_command() {
    let trader = Trader::with_printers();
    let folder = tempfile::tempdir().unwrap();
    let naming = NamingService::start(&trader.orb, NamingOptions::new(folder.path())).unwrap();
    let root = trader.url.replace(LOOKUP_KEY, "NameService");
    let references = [format!("-ORBInitRef NameService={root}"), format!("-ORBInitRef TradingService={}", trader.url)];
    let bind = |words: &[&str]| {
        let object = trader.object.to_string();
        let options = references.iter().flat_map(|option| ["--orb", option]);
        spandrel(&[&["bind"], &options.collect::<Vec<_>>()[..], &[words[0], &object], &words[1..]].concat())
    };
    // An offer that cannot be read leaves the name unbound.
    let output = bind(&["laser2", "--offer", "Printer", "name=laser2", "ppm=fast"]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("invalid value for the property `ppm`"), "{}", stderr(&output));
    let output = bind(&["laser2", "--offer", "Printer", "name=laser2", "ppm=50"]);
    check_code(&output, 0);
    assert_eq!(stdout(&output).lines().count(), 1);
    assert_eq!(trader.ok(&["query", "Printer", "ppm == 50", "--references"]), format!("{}\n", trader.object));
    // A name that is bound already is not offered again.
    check_code(&bind(&["laser2", "--offer", "Printer", "name=laser3", "ppm=51"]), 1);
    assert_eq!(trader.ok(&["query", "Printer", "ppm == 51"]), "");
    // An object is also exported by its name.
    let words = ["trade", "export", "Printer", "laser2", "name=again", "ppm=52", "--at", &trader.url];
    check_code(&spandrel(&[&words[..], &["--orb", &references[0]]].concat()), 0);
    assert_eq!(trader.ok(&["query", "Printer", "ppm == 52", "--references"]), format!("{}\n", trader.object));
    naming.stop().unwrap();
}
