//! The views in a browser.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use spandrel::Orb;
use spandrel::services::implementation_repository::{ActivationMode, Administration, StartupOptions};
use spandrel_test_support::browser::{Page, in_browser};
use spandrel_test_support::wait_until;

use super::probe::{Probe, commands};
use super::process::{WithConsole, data};
use crate::executable::{name, root};

/// The form of an operation, which is opened.
async fn open_form(page: &Page, operation: &str) -> String {
    let whole = format!("details.operation[data-name=\"{operation}\"]");
    page.wait(&format!("document.querySelector('{whole}')")).await;
    page.run("document.querySelector(arguments[0]).open = true", vec![json!(whole)]).await;
    page.wait(&format!("document.querySelector('{whole} form')")).await;
    format!("{whole} form")
}

/// Sends a form, and returns the text of the outcome.
async fn submit(page: &Page, form: &str) -> String {
    page.run("document.querySelector(arguments[0]).replaceChildren()", vec![json!(format!("{form} .outcome"))]).await;
    page.run("document.querySelector(arguments[0]).requestSubmit()", vec![json!(form)]).await;
    page.wait(&format!("document.querySelector('{form} .outcome .note')")).await;
    let text =
        page.run("return document.querySelector(arguments[0]).innerText", vec![json!(format!("{form} .outcome"))]);
    text.await.as_str().unwrap().to_owned()
}

/// Checks that every control has a name for those who do not see the page.
async fn controls_have_names(page: &Page) {
    let script = "return [...document.querySelectorAll('input, select, textarea')].filter((it) => {
          const ids = (it.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean);
          const text = it.getAttribute('aria-label') || ids.map((id) => document.getElementById(id)?.textContent || '').join('')
            || [...(it.labels || [])].map((label) => label.textContent).join('');
          return !text.trim();
        }).map((it) => `${it.closest('.field')?.dataset.field}: ${it.outerHTML}`)";
    assert_eq!(page.run(script, vec![]).await, json!([]));
}

fn input(form: &str, fields: &[&str], tag: &str) -> String {
    let path: String = fields.iter().map(|field| format!(" .field[data-field=\"{field}\"] > .value")).collect();
    format!("{form}{path} {tag}")
}

#[test]
fn names_are_walked_and_operations_of_every_kind_of_type_are_called() {
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &[]);
    let probe = Probe::start(&console.naming);
    in_browser(async |page| {
        // The token of the address is kept, and leaves the address.
        page.open(&format!("http://{}/", console.address)).await;
        page.wait_for_text("Log in").await;
        page.picture("login").await;
        page.set("#token", "wrong-wrong-wrong-wrong").await;
        page.click(".login button").await;
        page.wait_for_text("The token is not accepted").await;
        page.set("#token", &console.token).await;
        page.click(".login button").await;
        page.wait("document.querySelector('.node[data-path=\"probe\"]')").await;
        page.open("about:blank").await;
        page.open(&console.login).await;
        page.wait("document.querySelector('.node[data-path=\"probe\"]')").await;
        page.wait("!location.hash.includes('token')").await;
        // By the keyboard.
        page.run("document.querySelector('.node[data-path=\"probe\"]').focus()", vec![]).await;
        page.keys("\u{E014}").await; // right
        page.wait("document.querySelector('.node[data-path=\"probe/everything\"]')").await;
        page.click(".node[data-path=\"probe/everything\"]").await;
        page.wait_for_text("Takes values of every kind, and returns them.").await;
        page.wait_for_text("Takes basic values.").await;
        page.wait("document.querySelector('#state').dataset.state === 'exists'").await;
        page.picture("object").await;

        let form = open_form(&page, "basic").await;
        let text = "ä \"<b>\" \u{1F600}";
        for (field, value) in [
            ("b", "true"),
            ("o", "255"),
            ("s", "-32768"),
            ("u", "18446744073709551615"),
            ("d", "-1.5e300"),
            ("c", "é"),
            ("w", "€"),
            ("t", text),
            ("v", "wide"),
            ("f", "-123.45"),
        ] {
            page.set(&input(&form, &[field], "input"), value).await;
        }
        let outcome = submit(&page, &form).await;
        assert!(outcome.contains("Done"), "{outcome}");
        assert_eq!(
            probe.last("basic").unwrap(),
            [
                json!(true),
                json!(255),
                json!(-32768),
                json!("18446744073709551615"),
                json!(-1.5e300),
                json!("é"),
                json!("€"),
                json!(text),
                json!("wide"),
                json!("-123.45")
            ]
        );
        page.wait("!document.querySelector('main b')").await; // a text is no markup
        // A value that is out of range is not sent.
        page.set(&input(&form, &["o"], "input"), "256").await;
        let outcome = submit(&page, &form).await;
        assert_eq!(outcome, "The argument “o” is not a value of its type: expected an integer from 0 to 255.");
        let focus = page.run("return document.activeElement.closest('.field').dataset.field", vec![]).await;
        assert_eq!(focus, json!("o"));

        let form = open_form(&page, "constructed").await;
        page.wait_for_text("Eastward, in metres.").await;
        page.set(&input(&form, &["line", "name"], "input"), "shore").await;
        page.set(&input(&form, &["line", "from", "x"], "input"), "-7").await;
        page.click(&input(&form, &["line", "others"], "button.tiny")).await;
        page.set(&input(&form, &["line", "others", "y"], "input"), "0.25").await;
        page.set(&input(&form, &["line", "color"], "select"), "green").await;
        page.set(&input(&form, &["shape"], "select"), "red: text").await;
        page.set(&input(&form, &["shape", "text"], "input"), "round").await;
        page.set(&input(&form, &["data"], "input"), "00 ff 10").await;
        page.set(&input(&form, &["grid"], ".item:nth-child(2) .item:nth-child(1) input"), "3").await;
        page.set(&input(&form, &["tree", "label"], "input"), "root").await;
        page.click(&input(&form, &["tree", "below"], "button.tiny")).await;
        page.set(&input(&form, &["tree", "below", "label"], "input"), "leaf").await;
        let outcome = submit(&page, &form).await;
        assert!(outcome.contains("\"name\": \"shore\""), "{outcome}");
        assert_eq!(
            probe.last("constructed").unwrap(),
            [json!({ "name": "shore", "from": { "x": -7, "y": 0.0 }, "others": [{ "x": 0, "y": 0.25 }], "color": "green" })]
                .into_iter()
                .chain([json!({ "_d": "red", "text": "round" }), json!("AP8Q"), json!([[0, 0], [3, 0]]),
                    json!({ "label": "root", "below": [{ "label": "leaf", "below": [] }] })])
                .collect::<Vec<_>>()
        );
        page.wait("document.documentElement.scrollWidth <= innerWidth").await;
        page.picture("constructed").await;
        page.set(&input(&form, &["shape"], "select"), "default: flag").await;
        page.set(&input(&form, &["shape", "_d"], "select"), "green").await;
        page.set(&input(&form, &["shape", "flag"], "input"), "true").await;
        submit(&page, &form).await;
        assert_eq!(probe.last("constructed").unwrap()[1], json!({ "_d": "green", "flag": true }));

        let form = open_form(&page, "dynamic").await;
        page.set(&input(&form, &["value"], "select"), "Point").await;
        page.set(&input(&form, &["value", "x"], "input"), "5").await;
        page.set(&input(&form, &["type"], "select"), "sequence<long>").await;
        page.set(&input(&form, &["target"], "input"), &console.naming).await;
        page.set(&input(&form, &["node"], "input[type=checkbox]"), "true").await;
        page.set(&input(&form, &["node", "number"], "input"), "9").await;
        let outcome = submit(&page, &form).await;
        assert!(outcome.contains("Done"), "{outcome}");
        let seen = probe.last("dynamic").unwrap();
        assert_eq!((&seen[0]["_type"]["name"], &seen[0]["_value"]["x"]), (&json!("Point"), &json!(5)));
        assert_eq!(seen[1], json!("sequence<long>"));
        assert!(seen[2].as_str().unwrap().starts_with("IOR:"));
        assert_eq!(seen[3], json!({ "number": 9, "next": null }));
        page.picture("dynamic").await;

        let form = open_form(&page, "others").await;
        for (field, value) in
            [("fl", "0.5"), ("l", "-9223372036854775808"), ("us", "0xffff"), ("ul", "4294967295"), ("ld", "-Infinity")]
        {
            page.set(&input(&form, &[field], "input"), value).await;
        }
        page.set(&input(&form, &["title"], "input[type=checkbox]"), "true").await;
        page.set(&input(&form, &["title"], "input.wide"), "a box").await;
        page.set(&input(&form, &["choice"], "select"), "b: number").await;
        page.set(&input(&form, &["choice", "number"], "input"), "12").await;
        page.click(&input(&form, &["words"], ".group > button")).await;
        page.set(&input(&form, &["words"], "input"), "words").await;
        page.set(&input(&form, &["nothing"], "input[type=checkbox]"), "true").await;
        let outcome = submit(&page, &form).await;
        assert!(outcome.starts_with("The argument “words” is not a value of its type:"), "{outcome}");
        controls_have_names(&page).await;
        page.set(&input(&form, &["words"], "input"), "word").await;
        let outcome = submit(&page, &form).await;
        assert!(outcome.contains("\"a box\""), "{outcome}");
        let sent = probe.last("others").unwrap();
        assert_eq!(
            sent,
            [json!(0.5), json!("-9223372036854775808"), json!(65535), json!(4_294_967_295_u32), json!("-Infinity")]
                .into_iter()
                .chain([json!("a box"), json!({ "_d": "b", "number": 12 }), json!(["word"]), json!(null)])
                .collect::<Vec<_>>()
        );

        // As JSON, with what the form cannot express.
        let form = open_form(&page, "dynamic").await;
        page.click(&format!("{form} input.raw")).await;
        let arguments =
            json!({ "value": { "_type": "double", "_value": "NaN" }, "type": "short", "target": null, "node": null });
        page.set(&format!("{form} > textarea"), &arguments.to_string()).await;
        submit(&page, &form).await;
        assert_eq!(probe.last("dynamic").unwrap()[0], json!({ "_type": "double", "_value": "NaN" }));
        page.set(&format!("{form} > textarea"), "{\"value\": 1}").await;
        assert!(submit(&page, &form).await.contains("the arguments are not those of the operation"));

        let form = open_form(&page, "refuse").await;
        page.set(&input(&form, &["reason"], "input"), "because").await;
        let outcome = submit(&page, &form).await;
        assert_eq!(outcome.matches("Probe/Refused").count(), 1, "{outcome}");
        assert!(outcome.contains("code\n42") && !outcome.contains('{'), "{outcome}");
        page.picture("exception").await;
        let form = open_form(&page, "notify").await;
        page.set(&input(&form, &["text"], "input"), "hello").await;
        submit(&page, &form).await;
        wait_until("the one-way", || probe.last("notify") == Some(vec![json!("hello")]));
        open_form(&page, "level").await;
        let get = "details[data-name=level] form:nth-of-type(1)";
        assert!(submit(&page, get).await.contains('7'));
        let set = "details[data-name=level] form:nth-of-type(2)";
        page.set(&input(set, &["value"], "input"), "-3").await;
        submit(&page, set).await;
        assert_eq!(probe.last("_set_level"), Some(vec![json!(-3)]));

        page.resize(400, 800).await;
        page.wait("document.documentElement.scrollWidth <= innerWidth").await;
        page.picture("object-narrow").await;

        // The object's server ends, then the console's process.
        probe.stop();
        page.wait("document.querySelector('#state').dataset.state === 'unreachable'").await;
        page.wait_for_text("not reachable").await;
        page.resize(1280, 900).await;
        page.run("scrollTo(0, 0)", vec![]).await;
        page.picture("unreachable").await;
        let form = open_form(&page, "notify").await;
        let get = "details[data-name=level] form:nth-of-type(1)";
        let outcome = submit(&page, get).await;
        assert_eq!(outcome.matches("TRANSIENT").count(), 1, "{form}: {outcome}");
        assert!(!outcome.contains('{'), "{outcome}");
        let mut console = console;
        console.kill();
        page.wait("!document.querySelector('#lost').hidden").await;
        page.wait_for_text("cannot be reached since").await;
        page.picture("lost").await;
    });
}

/// More names than a page has, long ones, and addresses of names.
#[test]
fn names_beyond_the_first_page_are_found() {
    const NAMES: usize = 1_010;
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &[]);
    let orb = Orb::builder().build().unwrap();
    let root = root(&orb, &console.naming);
    let many = root.bind_new_context(&name("many")).unwrap().unwrap();
    let long = "x".repeat(3_000);
    // An object that is a context, of which the process knows the interface.
    std::thread::scope(|scope| {
        for part in 0..8 {
            let (many, root) = (&many, &root);
            scope.spawn(move || {
                for nth in (part..NAMES).step_by(8) {
                    many.bind(&name(&format!("n{nth:04}")), Some(root.as_object())).unwrap();
                }
            });
        }
    });
    root.bind(&name(&long), Some(root.as_object())).unwrap();
    in_browser(async |page| {
        page.open(&console.login).await;
        page.wait("document.querySelector('.node[data-path=many]')").await;
        let tab_stops = "document.querySelectorAll('.tree:not([hidden]) .node[tabindex=\"0\"]').length === 1";
        page.wait(tab_stops).await;
        let text = "return [...document.querySelectorAll('.node')].map((it) => it.textContent.length)";
        let lengths: Vec<u64> = serde_json::from_value(page.run(text, vec![]).await).unwrap();
        assert!(lengths.iter().all(|length| *length < 100), "{lengths:?}");
        page.click(".node[data-path=many]").await;
        page.wait("document.querySelectorAll('.node[data-path^=\"many/\"]').length === 1000").await;
        // A context has the interface of the naming service, and no warning.
        page.wait("document.querySelector('details.operation[data-name=resolve]')").await;
        page.wait("!document.querySelector('.note.warn')").await;
        page.picture("many").await;
        page.click(".node.more").await;
        page.wait(&format!("document.querySelectorAll('.node[data-path^=\"many/\"]').length === {NAMES}")).await;
        page.wait(tab_stops).await;
        page.wait("document.activeElement.dataset.path === 'many/n1000'").await;
        page.wait("![...document.querySelectorAll('.tree .node')].some((it) => it.tabIndex === 0 && it !== document.activeElement)").await;

        // The filter finds what no list has loaded.
        page.open("about:blank").await;
        page.open(&console.login).await;
        page.wait("document.querySelector('.node[data-path=many]')").await;
        page.set("input[type=search]", "N1009").await;
        page.wait("document.querySelector('.node[data-path=\"many/n1009\"]')").await;
        page.wait(tab_stops).await;
        page.picture("found").await;
        page.run("document.querySelector('#object').style.minHeight = '4000px'; scrollTo(0, 3000)", vec![]).await;
        page.run("document.querySelector('.node[data-path=\"many/n1009\"]').click()", vec![]).await;
        page.wait("document.querySelector('#object h2')?.textContent === 'many/n1009'").await;
        page.wait("(({ top }) => top >= document.querySelector('header').offsetHeight && top < innerHeight)(document.querySelector('#object h2').getBoundingClientRect())").await;
        page.set("input[type=search]", "").await;
        page.wait("document.querySelector('.node[data-path=many]').offsetParent").await;

        // The address of a name opens the tree around it.
        page.open("about:blank").await;
        page.open(&format!("http://{}/#/names?path=many%2Fn1009", console.address)).await;
        page.wait("document.querySelector('.node[data-path=\"many/n1009\"][aria-current]')").await;
        page.picture("linked").await;
        page.open("about:blank").await;
        page.open(&format!("http://{}/#/names?path={long}", console.address)).await;
        page.wait("document.querySelector('.node[aria-current]')").await;
        page.wait("document.querySelector('#object h2')?.textContent.length <= 120").await;
        // Its reference has no type, which the object tells.
        page.wait("document.querySelector('details.operation[data-name=resolve]')").await;
        page.wait("document.documentElement.scrollWidth <= innerWidth").await;
        page.picture("long").await;
        page.click("nav a[href='#/servers']").await;
        page.wait_for_text("spandrel activator add").await;
        page.picture("no-servers").await;
        assert_eq!(page.messages().await, Vec::<String>::new());
    });
}

#[test]
fn servers_are_started_and_stopped_and_their_death_is_shown() {
    let (_folder, data) = data();
    fs::write(data.join("commands.toml"), commands()).unwrap();
    let console = WithConsole::start(&data, &[]);
    let orb = Orb::builder().build().unwrap();
    let url = console.naming.replace("/NameService", "/ImplRepoService");
    let administration = Administration::unchecked_narrow(&orb.string_to_object(&url).unwrap());
    let options = StartupOptions {
        command: "bank".into(),
        activation: ActivationMode::Manual,
        description: "Accounts of the branch".into(),
        ..StartupOptions::default()
    };
    administration.register_server("bank", &options).unwrap();
    in_browser(async |page| {
        page.open(&console.login).await;
        page.click("nav a[href='#/servers']").await;
        page.wait("document.querySelector('tr[data-server=bank]')").await;
        controls_have_names(&page).await;
        let state = |state: &str| format!("document.querySelector('tr[data-server=bank] [data-state={state}]')");
        page.wait(&state("STOPPED")).await;
        page.click("tr[data-server=bank] .start").await;
        page.wait(&state("RUNNING")).await;
        let first = administration.find("bank").unwrap().pid;
        assert_ne!(first, 0);
        page.wait_for_text(&first.to_string()).await;
        page.click("tr[data-server=bank] .output-of").await;
        page.wait_for_text("the bank opens").await;
        page.picture("servers").await;
        page.resize(400, 800).await;
        page.wait("document.documentElement.scrollWidth <= innerWidth").await;
        page.picture("servers-narrow").await;
        page.resize(1280, 900).await;

        // Its requests are counted in its own process.
        let url = format!("{}/bank/bank", url);
        assert!(orb.string_to_object(&url).unwrap().non_existent().is_ok());
        page.click("nav a[href='#/load']").await;
        page.wait("document.querySelector('select option[value=bank]')").await;
        page.set("select", "bank").await;
        let figure = "document.querySelector('[data-chart=\"Open connections\"] .figure').dataset.value";
        page.wait(&format!("Number({figure}) >= 0")).await;
        page.wait("document.querySelector('tr[data-operation=server_is_running]')").await;
        page.picture("load-of-server").await;
        page.click("nav a[href='#/servers']").await;
        page.wait(&state("RUNNING")).await;

        // The server is killed.
        assert!(std::process::Command::new("kill").args(["-9", &first.to_string()]).status().unwrap().success());
        page.wait("!document.querySelector('tr[data-server=bank] [data-state=RUNNING]')").await;
        page.wait("document.querySelector('tr[data-server=bank] .problem')").await;
        page.picture("servers-killed").await;
        page.wait(&format!("{} || {} || true", state("BACKOFF"), state("STOPPED"))).await;
        administration.activate_server("bank").unwrap();
        page.wait(&state("RUNNING")).await;
        page.click("tr[data-server=bank] .drain").await;
        page.wait(&state("STOPPED")).await;
        assert_eq!(administration.find("bank").unwrap().pid, 0);
        page.click("tr[data-server=bank] .start").await;
        page.wait(&state("RUNNING")).await;
        page.click("tr[data-server=bank] .stop").await;
        page.wait(&state("STOPPED")).await;
        page.click("nav a[href='#/load']").await;
        page.wait("document.querySelector('select option[value=bank]')").await;
        page.set("select", "bank").await;
        page.wait_for_text("`bank` does not run").await;
    });
}

#[test]
fn rates_move_and_the_log_is_shown() {
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &[]);
    let orb = Orb::builder().build().unwrap();
    let names = root(&orb, &console.naming);
    names.bind_new_context(&name("bank")).unwrap();
    let (calling, is_ended) = (names, Arc::new(AtomicBool::new(false)));
    let caller = std::thread::spawn({
        let is_ended = Arc::clone(&is_ended);
        move || {
            while !is_ended.load(Ordering::Relaxed) {
                calling.resolve(&name("bank")).unwrap();
            }
        }
    });
    in_browser(async |page| {
        page.open(&console.login).await;
        page.click("nav a[href='#/load']").await;
        let figure = |title: &str| format!("document.querySelector('[data-chart=\"{title}\"] .figure').dataset.value");
        page.wait(&format!("Number({}) >= 1", figure("Open connections"))).await;
        page.wait(&format!("Number({}) > 1", figure("Requests served"))).await;
        page.wait(&format!("Number({}) > 0", figure("Latency of requests"))).await;
        page.wait("document.querySelector('tr[data-operation=resolve]')").await;
        page.wait("document.querySelectorAll('[data-chart=\"Requests served\"] polyline').length === 1").await;
        // Some samples, so that the lines can be looked at.
        let points = "document.querySelector('[data-chart=\"Open connections\"] polyline').getAttribute('points')";
        page.wait(&format!("{points}.split(' ').length >= 3")).await;
        page.picture("load").await;
        page.resize(400, 800).await;
        page.wait("document.documentElement.scrollWidth <= innerWidth").await;
        page.picture("load-narrow").await;
        page.resize(1280, 900).await;
        // The rate falls when the client ends.
        is_ended.store(true, Ordering::Relaxed);
        page.wait(&format!("Number({}) === 0", figure("Requests served"))).await;

        page.click("nav a[href='#/log']").await;
        page.wait("document.querySelector('#lines .line[data-level=INFO]')").await;
        page.picture("log").await;
        controls_have_names(&page).await;
        page.set("select", "error").await;
        page.wait("!document.querySelector('#lines .line:not([hidden])')").await;
    });
    is_ended.store(true, Ordering::Relaxed);
    caller.join().unwrap();
}
