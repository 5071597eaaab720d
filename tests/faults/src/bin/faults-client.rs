//! A client that is killed: calls without end, and writes down what it asks and what it is told. `faults-client REFERENCE DIARY FIRST`

use anyhow::bail;
use spandrel::Orb;
use spandrel_faults::journal::Journal;
use spandrel_faults::ledger::Book;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [reference, diary, first] = &arguments[..] else { bail!("not understood: {arguments:?}") };
    let diary = Journal::open(diary.as_ref())?;
    let orb = Orb::builder().build()?;
    let book = Book::unchecked_narrow(&orb.string_to_object(reference)?);
    for number in first.parse::<u64>()?.. {
        diary.begin(number)?;
        book.enter(number, &vec![0; number as usize % 3000 + 1])?;
        diary.end(number)?;
    }
    Ok(())
}
