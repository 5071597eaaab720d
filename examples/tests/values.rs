//! Value types in Rust: `mapping/values.idl` over a real connection, in both byte orders.

use std::sync::Mutex;

use spandrel::types::values::{
    AbstractRef, CdrError, Decode, Decoder, Encode, Encoder, GraphBuilder, Linked, ValueBase, ValueRef, custom_factory,
};
use spandrel::{
    SystemException, SystemExceptionKind,
    cdr::{ByteOrder, OctetForm, from_octets, to_octets},
    minor,
};

mod idl {
    spandrel::include_idl!("values");
}

use crate::pair::Pair;
use idl::garden::*;

/// The repository id of Java's `ArrayList`.
const JAVAS_ID: &str = "RMI:java.util.ArrayList:F655154F32815380:7881D21D99C7619D";

type Answer<T> = Result<T, SystemException>;
type PlantRef = ValueRef<dyn Plant>;

struct Echo;

impl GardenerServant for Echo {
    fn exchange(&self, p: Option<&PlantRef>, r: &mut Option<PlantRef>) -> Answer<(Option<PlantRef>, Option<PlantRef>)> {
        let before = std::mem::replace(r, p.cloned());
        Ok((p.cloned(), before))
    }

    fn reshape(&self, s: Option<&ValueRef<dyn Shape>>) -> Answer<Option<ValueRef<dyn Shape>>> {
        Ok(s.cloned())
    }

    fn make_bed(&self, b: &Bed) -> Answer<Bed> {
        Ok(b.clone())
    }

    fn reap(&self, h: &Harvest) -> Answer<Harvest> {
        Ok(h.clone())
    }

    fn relabel(&self, l: Option<&ValueRef<Label>>) -> Answer<Option<ValueRef<Label>>> {
        Ok(l.map(|label| ValueRef::new(Label(format!("{}!", label.0)))))
    }

    fn sow(&self, p: Option<&ValueRef<Plants>>) -> Answer<Option<ValueRef<Plants>>> {
        Ok(p.cloned())
    }

    fn recount(&self, c: Option<&ValueRef<Counts>>) -> Answer<Option<ValueRef<Counts>>> {
        Ok(c.cloned())
    }

    fn retell(&self, s: Option<&ValueRef<dyn Story>>) -> Answer<Option<ValueRef<dyn Story>>> {
        Ok(s.cloned())
    }

    fn whisper(&self, s: Option<&ValueRef<dyn Secret>>) -> Answer<Option<ValueRef<dyn Secret>>> {
        Ok(s.cloned())
    }

    fn name_it(&self, n: Option<&ValueRef<dyn Named>>) -> Answer<Option<ValueRef<dyn Named>>> {
        Ok(n.cloned())
    }

    fn show(
        &self,
        d: Option<&AbstractRef<Describable, dyn DescribableServant>>,
    ) -> Answer<Option<AbstractRef<Describable, dyn DescribableServant>>> {
        Ok(d.cloned())
    }

    fn anything(&self, v: Option<&ValueRef<dyn ValueBase>>) -> Answer<Option<ValueRef<dyn ValueBase>>> {
        Ok(v.cloned())
    }

    fn wither(&self, p: Option<&PlantRef>) -> Result<(), gardener::WitherError> {
        Err(Withered { what: p.cloned() }.into())
    }

    fn favourite(&self) -> Answer<Option<PlantRef>> {
        Ok(None)
    }

    fn set_favourite(&self, _: Option<&PlantRef>) -> Answer<()> {
        Ok(())
    }
}

/// Registers the factories of values with operations, on both sides.
fn register(orb: &spandrel::Orb) {
    orb.register_value::<dyn Story, _>(Tale::from);
    orb.register_value_factory("IDL:Garden/Secret:1.0", custom_factory::<dyn Secret, _>(Whisper::read));
    orb.register_plain_value::<dyn Plant>();
    orb.register_value_factory(JAVAS_ID, custom_factory::<dyn ArrayList, _>(ValueList::read));
}

#[track_caller]
fn in_both_orders(test: impl Fn(&Pair, &Gardener)) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let pair = Pair::new(order);
        register(&pair.server);
        register(&pair.client);
        let gardener = pair.serve(GardenerSkeleton::new(Echo));
        test(&pair, &gardener);
    }
}

fn plant(name: &str) -> PlantState {
    PlantState { name: name.to_owned(), height: 0.5, ..PlantState::default() }
}

#[test]
fn a_value_without_operations_is_its_state() {
    in_both_orders(|_, gardener| {
        let rose: PlantRef = ValueRef::new(plant("rose"));
        assert_eq!(rose.name(), "rose");
        let (back, before) = gardener.exchange(Some(&rose), &mut None).unwrap();
        let back = back.unwrap();
        assert_eq!((before, back.next()), (None, None));
        assert_eq!(*back.plant_state(), plant("rose"));
    });
}

#[test]
fn sharing_and_circles_survive_a_call() {
    in_both_orders(|_, gardener| {
        let (hop, vine) = GraphBuilder::build(|garden| {
            let hop: PlantRef = garden.reserve();
            let vine: PlantRef = garden.add(PlantState { next: Some(hop.clone()).into(), ..plant("vine") });
            let neighbours = vec![Some(vine.clone()), None, Some(hop.clone()), Some(vine.clone())];
            garden.define(&hop, PlantState { neighbours: neighbours.into(), ..plant("hop") })?;
            Ok((hop, vine))
        })
        .unwrap();
        assert_eq!(vine.next().as_ref(), Some(&hop));
        let mut given: Option<PlantRef> = Some(vine);
        let (hop, vine) = gardener.exchange(Some(&hop), &mut given).unwrap();
        let (hop, vine) = (hop.unwrap(), vine.unwrap());
        assert_eq!((hop.name(), vine.name(), given.as_ref()), ("hop", "vine", Some(&hop)));
        assert_eq!(hop.neighbours(), [Some(vine.clone()), None, Some(hop.clone()), Some(vine.clone())]);
        assert_eq!(vine.next(), Some(hop));
    });
}

#[test]
fn derived_values_keep_their_type() {
    in_both_orders(|_, gardener| {
        let shape = ShapeState { x: 3, y: -4 };
        let inside = ValueRef::new(plant("clover"));
        let circle = CircleState { base: shape.clone(), radius: 2.5, inside: Some(inside).into() };
        let ring: ValueRef<dyn Ring> = ValueRef::new(RingState { base: circle, width: 0.25 });
        assert_eq!((ring.x(), ring.radius(), ring.width()), (3, 2.5, 0.25));
        let back = gardener.reshape(Some(&ring.upcast())).unwrap().unwrap();
        assert_eq!((back.x(), back.y()), (3, -4));
        let ring: ValueRef<dyn Ring> = back.downcast().unwrap();
        assert_eq!((ring.radius(), ring.width()), (2.5, 0.25));
        assert_eq!(ring.inside().unwrap().name(), "clover");
        let circle: ValueRef<dyn Circle> = ring.upcast();
        assert_eq!(circle.upcast::<dyn Shape>(), back);
        let plain = gardener.reshape(Some(&ValueRef::new(shape))).unwrap().unwrap();
        assert!(plain.downcast::<dyn Circle>().is_none());
    });
}

#[test]
fn values_may_be_members_of_structs_unions_exceptions_and_boxes() {
    in_both_orders(|_, gardener| {
        let oak: PlantRef = ValueRef::new(plant("oak"));
        let bed = gardener.make_bed(&Bed { number: 9, first: Some(oak.clone()) }).unwrap();
        assert_eq!((bed.number, bed.first.unwrap().name()), (9, "oak"));

        let reaped = gardener.reap(&Harvest::Grown(Some(oak.clone()))).unwrap();
        let Harvest::Grown(Some(grown)) = reaped else { panic!("{reaped:?}") };
        assert_eq!(grown.name(), "oak");

        let label = gardener.relabel(Some(&ValueRef::new(Label("moss".to_owned())))).unwrap().unwrap();
        assert_eq!(label.0, "moss!");
        assert_eq!(gardener.relabel(None), Ok(None));
        let counts = gardener.recount(Some(&ValueRef::new(Counts(vec![4, 5])))).unwrap().unwrap();
        assert_eq!(counts.0, [4, 5]);
        let plants = Plants(vec![Some(oak.clone()), Some(oak.clone())].into());
        let plants = gardener.sow(Some(&ValueRef::new(plants))).unwrap().unwrap().0.get();
        assert_eq!(plants[0], plants[1]);

        let Err(gardener::WitherError::Withered(Withered { what })) = gardener.wither(Some(&oak)) else {
            panic!("nothing withered")
        };
        assert_eq!(what.unwrap().name(), "oak");
    });
}

/// A value with operations: the IDL gives its state, this type the rest.
struct Tale {
    state: StoryState,
    author: Mutex<String>,
}

impl From<StoryState> for Tale {
    fn from(state: StoryState) -> Self {
        Self { state, author: Mutex::new("nobody".to_owned()) }
    }
}

impl Named for Tale {
    fn title(&self) -> Answer<String> {
        Ok(self.state.text.to_uppercase())
    }
}

impl DescribableServant for Tale {
    fn describe(&self, detail: i32) -> Answer<String> {
        Ok(format!("{} in {detail} words", self.state.text))
    }
}

impl CounterServant for Tale {
    fn count(&self) -> Answer<i32> {
        Ok(self.state.marks.iter().sum())
    }
}

impl Story for Tale {
    fn story_state(&self) -> &StoryState {
        &self.state
    }

    fn add(&self, _: &str) -> Result<(), story::AddError> {
        Err(Withered { what: None }.into())
    }

    fn author(&self) -> Answer<String> {
        Ok(self.author.lock().unwrap().clone())
    }

    fn set_author(&self, value: &str) -> Answer<()> {
        *self.author.lock().unwrap() = value.to_owned();
        Ok(())
    }
}

/// The initializers of the IDL.
struct Stories;

impl StoryFactory for Stories {
    fn make(&self, text: &str) -> Result<ValueRef<dyn Story>, story::MakeError> {
        match text {
            "" => Err(Withered { what: None }.into()),
            text => Ok(ValueRef::new(Tale::from(StoryState { text: text.to_owned(), marks: vec![2, 5] }))),
        }
    }

    fn empty(&self) -> Answer<ValueRef<dyn Story>> {
        Ok(ValueRef::new(Tale::from(StoryState::default())))
    }
}

#[test]
fn operations_run_locally() {
    in_both_orders(|pair, gardener| {
        assert!(Stories.make("").is_err() && Stories.empty().is_ok());
        let story = Stories.make("once").unwrap();
        story.set_author("somebody").unwrap();
        let told = gardener.retell(Some(&story)).unwrap().unwrap();
        assert_eq!((told.text(), told.title(), told.count()), ("once", Ok("ONCE".to_owned()), Ok(7)));
        // Only the state is sent.
        assert_eq!(told.author(), Ok("nobody".to_owned()));
        assert!(matches!(told.add("more"), Err(story::AddError::Withered(_))));

        let named = gardener.name_it(Some(&story.upcast())).unwrap().unwrap();
        assert_eq!(named.title(), Ok("ONCE".to_owned()));

        // For an abstract interface a value is sent by value, and an object by reference.
        let by_value = gardener.show(Some(&AbstractRef::Value(story.upcast()))).unwrap();
        let Some(AbstractRef::Value(value)) = by_value else { panic!("{by_value:?}") };
        assert_eq!(value.describe(3), Ok("once in 3 words".to_owned()));
        let object: Describable = pair.serve(DescribableSkeleton::new(story.clone()));
        let by_reference = gardener.show(Some(&AbstractRef::Object(object))).unwrap();
        let Some(AbstractRef::Object(object)) = by_reference else { panic!("{by_reference:?}") };
        assert_eq!(object.describe(4), Ok("once in 4 words".to_owned()));
        assert_eq!(gardener.show(None), Ok(None));
    });
}

/// A custom value, whose encoding differs from its IDL.
struct Whisper(SecretState);

impl Whisper {
    fn read(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let times = input.u8()?;
        let letters: Vec<char> = (0..times).map(|_| char::decode(input)).collect::<Result<_, _>>()?;
        Ok(Self(SecretState { key: letters.into_iter().rev().collect(), times }))
    }
}

impl Secret for Whisper {
    fn secret_state(&self) -> &SecretState {
        &self.0
    }

    fn marshal<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u8(self.0.times);
        self.0.key.chars().rev().try_for_each(|letter| out.wchar(letter))
    }
}

#[test]
fn custom_values_marshal_themselves() {
    in_both_orders(|_, gardener| {
        let secret: ValueRef<dyn Secret> = ValueRef::new(Whisper(SecretState { key: "pst".to_owned(), times: 3 }));
        let heard = gardener.whisper(Some(&secret)).unwrap().unwrap();
        assert_eq!(heard.key(), "pst");
    });
}

/// A list in the form of Java's `ArrayList`: a custom value that refers to other values.
struct ValueList {
    state: ArrayListState,
    elements: Vec<Linked<Option<ValueRef<dyn ValueBase>>>>,
}

impl ValueList {
    fn new(elements: Vec<Option<ValueRef<dyn ValueBase>>>) -> Self {
        Self {
            state: ArrayListState { size: elements.len() as i32 },
            elements: elements.into_iter().map(Linked::from).collect(),
        }
    }

    fn read(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let (_version, _has_defaults) = (input.u8()?, input.bool()?);
        let (size, _capacity) = (input.i32()?, input.i32()?);
        let mut elements = Vec::new();
        for _ in 0..size {
            // As an abstract interface: false before a value.
            let _is_object = input.bool()?;
            elements.push(Linked::decode(input)?);
        }
        Ok(Self { state: ArrayListState { size }, elements })
    }
}

impl ArrayList for ValueList {
    fn array_list_state(&self) -> &ArrayListState {
        &self.state
    }

    fn marshal<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u8(1);
        out.bool(true);
        out.i32(self.state.size);
        out.i32(self.state.size);
        for element in &self.elements {
            out.bool(false);
            element.encode(out)?;
        }
        Ok(())
    }
}

#[test]
fn a_custom_value_may_refer_to_other_values() {
    in_both_orders(|_, gardener| {
        let fern: PlantRef = ValueRef::new(plant("fern"));
        let list: ValueRef<dyn ArrayList> =
            ValueRef::new(ValueList::new(vec![Some(fern.upcast()), None, Some(fern.upcast())]));
        let back = gardener.anything(Some(&list.upcast())).unwrap().unwrap();
        let list: &ValueList = back.implementation().unwrap();
        let elements: Vec<_> = list.elements.iter().map(Linked::get).collect();
        assert_eq!(elements[0].as_ref().unwrap().downcast::<dyn Plant>().unwrap().name(), "fern");
        assert_eq!((&elements[1], &elements[2]), (&None, &elements[0]));
    });
}

/// The octets of an `ArrayList` of the strings "one", "two" and, again, "one", as GlassFish's ORB 5.0.0 on Java 17 writes
/// them. It reads the same with byte order marks, which Spandrel writes.
const JAVAS_LIST: &str = concat!(
    "7fffff0a",
    "0000003a",
    "524d493a6a6176612e7574696c2e41727261794c6973743a463635353135344633323831353338303a",
    "37383831443231443939433736313944000000",
    "0000000d",
    "01010000",
    "00000003",
    "00000003",
    "00000000",
    "7fffff0a",
    "00000023",
    "49444c3a6f6d672e6f72672f434f5242412f57537472696e6756616c75653a312e300000",
    "0000000a",
    "00000006",
    "006f006e0065",
    "0000fffffffe",
    "00000001",
    "00000000",
    "7fffff0a",
    "ffffffffffffffb4",
    "0000000a",
    "00000006",
    "00740077006f",
    "0000fffffffe",
    "0000000c",
    "00000000",
    "ffffffffffffff8c",
    "ffffffff",
);

#[test]
fn a_list_of_java_is_read_and_written() {
    let orb = spandrel::Orb::builder().build().unwrap();
    register(&orb);
    orb.register_plain_value::<JavaString>();
    let octets: Vec<u8> =
        (0..JAVAS_LIST.len()).step_by(2).map(|at| u8::from_str_radix(&JAVAS_LIST[at..at + 2], 16).unwrap()).collect();
    let form = OctetForm::bare(ByteOrder::Big).binder(&orb);
    let value: Option<ValueRef<dyn ValueBase>> = from_octets(&octets, &form).unwrap();
    let list: &ValueList = value.as_ref().unwrap().implementation().unwrap();
    let elements: Vec<_> = list.elements.iter().map(|element| element.get().unwrap()).collect();
    let texts: Vec<_> = elements.iter().map(|element| element.downcast::<JavaString>().unwrap().0.clone()).collect();
    assert_eq!(texts, ["one", "two", "one"]);
    assert_eq!(elements[0], elements[2]);
    let written: String = to_octets(&value, &form).unwrap().iter().map(|octet| format!("{octet:02x}")).collect();
    let marked = JAVAS_LIST.replace("0000000a00000006006f006e00650000", "0000000c00000008feff006f006e0065");
    assert_eq!(written, marked.replace("0000000a0000000600740077006f0000", "0000000c00000008feff00740077006f"));
}

#[test]
fn value_base_positions_accept_any_value_with_a_factory() {
    in_both_orders(|pair, gardener| {
        let fern: PlantRef = ValueRef::new(plant("fern"));
        let back = gardener.anything(Some(&fern.upcast())).unwrap().unwrap();
        assert_eq!(back.downcast::<dyn Plant>().unwrap().name(), "fern");
        pair.server.unregister_value_factory("IDL:Garden/Plant:1.0");
        let refused = gardener.anything(Some(&fern.upcast())).unwrap_err();
        assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::Marshal, minor::NO_VALUE_FACTORY));
        assert_eq!(gardener.anything(None), Ok(None));
    });
}

#[test]
fn the_nesting_limit_of_values_can_be_set() {
    let pair = Pair::new(ByteOrder::Little);
    let gardener: Gardener = pair.serve(GardenerSkeleton::new(Echo));
    let list = |len| {
        (0..len)
            .fold(None, |next: Option<PlantRef>, _| Some(ValueRef::new(PlantState { next: next.into(), ..plant("") })))
    };
    assert!(gardener.exchange(list(256).as_ref(), &mut None).is_ok());
    assert!(gardener.exchange(list(257).as_ref(), &mut None).is_err());
    let client = spandrel::Orb::builder().max_value_nesting(4).build().unwrap();
    let text = pair.client.object_to_string(gardener.as_object());
    let strict = Gardener::unchecked_narrow(&client.string_to_object(&text).unwrap());
    assert!(strict.exchange(list(4).as_ref(), &mut None).is_ok());
    assert!(strict.exchange(list(5).as_ref(), &mut None).is_err());
    client.shutdown().unwrap();
}
