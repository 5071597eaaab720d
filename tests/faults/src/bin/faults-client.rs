//! The client that is killed: it calls in an endless loop, and records each call and each result.
//! `faults-client REFERENCE JOURNAL FIRST`

use anyhow::bail;
use spandrel::Orb;
use spandrel_faults::journal::Journal;
use spandrel_faults::ledger::Book;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [reference, journal, first] = &arguments[..] else { bail!("invalid arguments: {arguments:?}") };
    let journal = Journal::open(journal.as_ref())?;
    let orb = Orb::builder().build()?;
    let book = Book::unchecked_narrow(&orb.string_to_object(reference)?);
    for number in first.parse::<u64>()?.. {
        journal.begin(number)?;
        book.enter(number, &vec![0; number as usize % 3000 + 1])?;
        journal.end(number)?;
    }
    Ok(())
}
