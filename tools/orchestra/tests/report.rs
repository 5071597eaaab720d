//! The HTML page of a report in a browser.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spandrel_orchestra::plan::Plan;
use spandrel_orchestra::results::{Cpu, Failure, Host, Latencies, Record, ResultsFile, Sample};
use spandrel_test_support::browser::{Page, in_browser};

use crate::running::{orchestra, output, text};

const PLAN: &str = "name = \"The servers of <paper> 004\"\nclients = [\"starship\"]\nsamples = 10\n\
    notes = [\"ACE, Java and Tcl on Windows are absent.\"]\n\
    [[server]]\nhost = \"bobsdell\"\ncommand = \"ours\"\narchitectures = [\"iterative\"]\n\
    [[server]]\nhost = \"bobsdell\"\ncommand = \"ours\"\narchitectures = [\"queue-pool\"]\npooled = true\n\
    [[server]]\nhost = \"bobsdell\"\ncommand = \"native\"\narchitectures = [\"iterative\"]\n\
    [[server]]\nhost = \"bobsdell\"\ncommand = \"other\"\narchitectures = [\"iterative\"]\n\
    [[pair]]\nfirst = \"ours/iterative\"\nsecond = \"native/iterative\"\n\
    [versions]\n\"C compiler\" = \"cc (Debian 12.2.0-14+deb12u1) 12.2.0\"\nWine = \"wine-8.0 (Debian 8.0~repack-4)\"\n";

/// Writes results, and reports them; returns the page.
fn report(folder: &Path) -> PathBuf {
    let (plan_file, results, report) = (folder.join("plan.toml"), folder.join("plan.jsonl"), folder.join("report"));
    fs::write(&plan_file, PLAN).unwrap();
    let plan = Plan::read(&plan_file).unwrap();
    let (mut file, _) = ResultsFile::open(&results, &plan).unwrap();
    for (host, role) in [("bobsdell", "server"), ("starship", "client")] {
        let properties =
            [("kernel", "Linux 6.1.0-28-amd64"), ("processor", "Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz")];
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (host, role, versions) = (host.to_owned(), role.to_owned(), BTreeMap::new());
        file.append(&Record::Host(Host { host, role, properties: properties.into(), versions })).unwrap();
    }
    for (number, target) in plan.targets().iter().enumerate() {
        for round in 0..plan.samples {
            // Differ by server and round, also in the number of digits.
            let seconds = 9.0 + 0.7 * number as f64 + 0.01 * f64::from(round * 7 % 10);
            let cpu = |part: f64| Cpu { user: seconds * part, system: seconds * part * 2.0 };
            let sample = Sample {
                target: target.name.clone(),
                load: "closed".to_owned(),
                round,
                elapsed: seconds,
                requests: 20_000,
                answered: 19_999,
                failed: 1,
                errors: BTreeMap::from([("reset".to_owned(), 1)]),
                cpu: BTreeMap::from([("group".to_owned(), cpu(0.1)), ("machine".to_owned(), cpu(0.3))]),
                resident: 5 << 20,
                latency: Latencies {
                    p50: seconds / 1e4,
                    p99: seconds / 1e3,
                    highest: seconds / 10.0,
                    ..Latencies::default()
                },
                ..Sample::default()
            };
            file.append(&Record::Sample(Box::new(sample))).unwrap();
        }
    }
    let reason = "take_result at the agent of starship failed: COMM_FAILURE: the peer closed the connection".to_owned();
    let (target, load) = ("ours/iterative".to_owned(), "closed".to_owned());
    let lost_agent = Some("starship".to_owned());
    file.append(&Record::Failure(Failure { target, load, round: 3, at: 0.0, lost_agent, reason })).unwrap();
    let done = output(orchestra().arg("report").arg(&results).arg("--output").arg(&report));
    assert!(done.status.success(), "{}", text(&done));
    report.join("report.html")
}

#[test]
fn a_server_without_samples_is_named_and_a_single_sample_has_no_deviation() {
    let folder = tempfile::tempdir().unwrap();
    let (plan_file, results) = (folder.path().join("plan.toml"), folder.path().join("plan.jsonl"));
    fs::write(&plan_file, PLAN).unwrap();
    let plan = Plan::read(&plan_file).unwrap();
    let (mut file, _) = ResultsFile::open(&results, &plan).unwrap();
    for target in ["ours/iterative", "native/iterative", "native/iterative"] {
        let (target, load) = (target.to_owned(), "closed".to_owned());
        let cpu = BTreeMap::from([("group".to_owned(), Cpu { user: 1.0, system: 2.0 })]);
        file.append(&Record::Sample(Box::new(Sample { target, load, elapsed: 5.0, cpu, ..Sample::default() })))
            .unwrap();
    }
    let done = output(orchestra().arg("report").arg(&results).arg("--output").arg(folder.path().join("report")));
    let shown = text(&done);
    let absent = "No sample could be taken yet of ours/queue-pool-5 (closed), ours/queue-pool-10 (closed), \
                  other/iterative (closed).";
    assert!(shown.contains(absent), "{shown}");
    let cells = |first: &str| {
        let line = shown.lines().find(|line| line.starts_with(first)).unwrap_or_else(|| panic!("{first}: {shown}"));
        line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(cells("| ours/iterative ")[2..5], ["1", "5.000", "1.000"]);
    assert_eq!(cells("| native/iterative ")[2..5], ["2", "5.000 ± 0.000", "1.000 ± 0.000"]);
    assert_eq!(cells("| ours/iterative : native/iterative ")[4..9], ["3.000 : 3.000", "-", "-", "-", "-"]);
    assert!(!shown.contains("## Machines"), "{shown}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let failed = output(orchestra().arg("report").arg(&results).arg("--output").arg(&file));
    assert!(text(&failed).starts_with("error: cannot write the report (--output): "), "{}", text(&failed));
}

#[test]
fn names_with_characters_of_markdown_are_shown_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (plan_file, results) = (folder.path().join("plan.toml"), folder.path().join("plan.jsonl"));
    let text_of_plan = "name = \"<i>all</i>\"\nclients = [\"c\"]\nnotes = [\"> [a](b), *c*\", \"- d\"]\n\
        [[server]]\nhost = \"h\"\ncommand = \"c\"\nname = \"x|y<b>\"\narchitectures = [\"a_b\"]\npicture = \"`p`\"\n\
        [[load]]\nname = \"~l~ \\\\ &lt; _m_\"\n[versions]\n\"C|\\n|\" = \"1|2\"\n";
    fs::write(&plan_file, text_of_plan).unwrap();
    let plan = Plan::read(&plan_file).unwrap();
    let (mut file, _) = ResultsFile::open(&results, &plan).unwrap();
    let (target, load) = (plan.targets()[0].name.clone(), plan.loads[0].name.clone());
    let sample = Sample { target: target.clone(), load: load.clone(), elapsed: 5.0, ..Sample::default() };
    file.append(&Record::Sample(Box::new(sample))).unwrap();
    let reason = "a | b\n\u{1b}c".to_owned();
    file.append(&Record::Failure(Failure { target, load, round: 0, at: 0.0, lost_agent: None, reason })).unwrap();
    let done = output(orchestra().arg("report").arg(&results).arg("--output").arg(folder.path().join("report")));
    let shown = text(&done);
    for part in [
        "# \\<i>all\\</i>\n",
        "\n\\> \\[a\\](b), \\*c\\*\n",
        "\n\\- d\n",
        "\n## \\`p\\`\n",
        "\n| x\\|y\\<b>/a_b | ",
        " \\~l\\~ \\\\ \\&lt; \\_m\\_ |",
        " a \\| b\\\\n\\\\u001bc |",
        "\n| C\\|\\\\n\\| |    1\\|2 |",
    ] {
        assert!(shown.contains(part), "`{part}` is missing in\n{shown}");
    }
    // All rows of a table have the cells of its header.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = shown.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with('|'))) {
        assert_eq!(cells(pair[0]), cells(pair[1]), "{pair:?}");
    }
}

/// The texts of a column of the first table.
async fn column(page: &Page, number: usize) -> Vec<String> {
    let script =
        "return [...document.querySelector('table').tBodies[0].rows].map(row => row.cells[arguments[0]].textContent)";
    serde_json::from_value(page.run(script, vec![json!(number)]).await).unwrap()
}

/// A computed style of the first element that the selector names.
async fn style(page: &Page, selector: &str, name: &str) -> Value {
    let script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]";
    page.run(script, vec![json!(selector), json!(name)]).await
}

const FIRST: &str = "svg g[data-series='0']";
const SECOND: &str = "svg g[data-series='1']";

#[test]
fn the_page_of_a_report_works_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let file = report(folder.path());
    in_browser(async |page| {
        page.command("Network.enable", json!({})).await;
        let offline = json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
        page.command("Network.emulateNetworkConditions", offline).await;
        page.open(&format!("file://{}", file.display())).await;
        assert_eq!(
            page.run("return performance.getEntriesByType('resource').length", vec![]).await,
            0,
            "it loads nothing"
        );
        for text in ["The servers of <paper> 004", "ACE, Java and Tcl on Windows are absent.", "cc (Debian 12.2.0"] {
            page.wait_for_text(text).await;
        }
        pictures_are_drawn(&page).await;
        tables_are_sorted(&page).await;
        series_are_hidden_and_stand_out(&page).await;
        for width in [1280, 420] {
            page.resize(width, 900).await;
            // Tables that are too wide scroll by themselves.
            page.wait("document.documentElement.scrollWidth <= window.innerWidth").await;
            for (part, selector) in [
                ("tables", "h1"),
                ("comparisons", "h2:nth-of-type(3)"),
                ("machines", "h2:nth-of-type(6)"),
                ("figures", "svg"),
            ] {
                page.run("document.querySelector(arguments[0]).scrollIntoView()", vec![json!(selector)]).await;
                page.picture(&format!("report-{width}-{part}")).await;
            }
        }
        assert_eq!(page.messages().await, [""; 0], "messages in the console");
    });
}

/// Each figure has its size, and a mark for each sample and for the name of each series.
async fn pictures_are_drawn(page: &Page) {
    let script = "return [...document.querySelectorAll('svg')].map(svg => [svg.getBoundingClientRect().width, \
        [...svg.querySelectorAll('g[data-series]')].map(g => g.querySelectorAll(':scope > :is(circle, rect, polygon)').length)])";
    let pictures = page.run(script, vec![]).await;
    let pictures = pictures.as_array().unwrap();
    assert_eq!(pictures.len(), 4, "iterative and queue-pool, of the server and of the machine");
    for (picture, series) in pictures.iter().zip([3, 3, 2, 2]) {
        assert!(picture[0].as_f64().unwrap() > 500.0, "{picture}");
        assert_eq!(picture[1], json!(vec![11; series]));
    }
    // A point is where the picture shows it.
    let place =
        "const { x, y, width, height } = document.querySelector('svg g[data-series] circle').getBoundingClientRect();
        return width > 0 && height > 0 && x > 0 && y !== 0";
    assert_eq!(page.run(place, vec![]).await, true);
    let title = page.run("return document.querySelector('svg g[data-series] title').textContent", vec![]).await;
    assert_eq!(title, "ours/iterative: 9.0000, 2.7000");
}

/// A click on a heading sorts by numbers where there are some, and another click in the other order.
async fn tables_are_sorted(page: &Page) {
    let planned = ["ours/iterative", "native/iterative", "other/iterative"];
    assert_eq!(column(page, 0).await, planned);
    let elapsed = "table th:nth-child(3)";
    page.click(elapsed).await;
    assert!(column(page, 2).await[0].starts_with("9."), "9 is below 10: {:?}", column(page, 2).await);
    assert_eq!(
        page.run("return document.querySelector(arguments[0]).ariaSort", vec![json!(elapsed)]).await,
        "ascending"
    );
    page.click(elapsed).await;
    assert_eq!(column(page, 0).await, ["other/iterative", "native/iterative", "ours/iterative"]);
    page.click("table th:nth-child(1)").await;
    assert_eq!(column(page, 0).await, ["native/iterative", "other/iterative", "ours/iterative"]);
    let sorted = "return document.querySelectorAll('th[aria-sort]').length";
    assert_eq!(page.run(sorted, vec![]).await, 1, "one column tells the order");
}

/// A click on the name of a series hides its points, and another one shows them; the mouse makes a series stand out.
async fn series_are_hidden_and_stand_out(page: &Page) {
    let points = format!("{FIRST} circle");
    let name = format!("{FIRST} text");
    assert_eq!(style(page, &points, "display").await, "inline");
    page.click(&name).await;
    assert_eq!(style(page, &points, "display").await, "none");
    assert_ne!(style(page, &name, "display").await, "none");
    page.click(&name).await;
    assert_eq!(style(page, &points, "display").await, "inline");
    page.hover("h1").await;
    page.wait(&format!("getComputedStyle(document.querySelector(\"{SECOND}\")).opacity === '1'")).await;
    page.hover(&points).await;
    page.wait(&format!("document.querySelector(\"{FIRST}\").matches(':hover')")).await;
    assert_eq!(style(page, FIRST, "opacity").await, "1");
    assert_eq!(style(page, SECOND, "opacity").await, "0.25");
    page.hover("h1").await;
}
