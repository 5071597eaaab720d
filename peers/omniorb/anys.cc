// Prints anys as omniORB writes them, in both byte orders: `NAME ORDER HEX` per line.
//
// With --echo, reads such lines instead, decodes each any and prints omniORB's encoding of it, or `NAME ORDER refused`.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "anys.hh"

namespace {

void print(const std::string& name, const CORBA::Any& any, bool little) {
  cdrMemoryStream out;
  out.setByteSwapFlag(little);
  any >>= out;
  std::printf("%s %s ", name.c_str(), little ? "little" : "big");
  const unsigned char* octets = static_cast<const unsigned char*>(out.bufPtr());
  for (CORBA::ULong i = 0; i < out.bufSize(); ++i) std::printf("%02x", octets[i]);
  std::printf("\n");
}

void print(const char* name, const CORBA::Any& any) {
  print(name, any, true);
  print(name, any, false);
}

template <class T>
void show(const char* name, T value) {
  CORBA::Any any;
  any <<= value;
  print(name, any);
}

// Gives access to the private member.
template <class State>
struct Value : virtual State, virtual CORBA::DefaultValueRefCountBase {
  void remark(const char* text) { State::note(text); }
};
using NodeImpl = Value<OBV_Golden::Node>;
using SpecialImpl = Value<OBV_Golden::Special>;

Golden::Point point(CORBA::Short x, CORBA::Double y) {
  Golden::Point made;
  made.x = x;
  made.y = y;
  return made;
}

void values() {
  NodeImpl* last = new NodeImpl;
  last->value(2);
  last->remark("last");
  last->next(0);
  NodeImpl* first = new NodeImpl;
  first->value(1);
  first->remark("first");
  first->next(last);
  show<Golden::Node*>("value", last);
  show<Golden::Node*>("value-list", first);
  last->next(first);
  show<Golden::Node*>("value-cycle", first);
  show<Golden::Node*>("value-nil", 0);
  SpecialImpl* special = new SpecialImpl;
  special->value(3);
  special->remark("special");
  special->where(point(4, 5.5));
  special->next(special);
  show<Golden::Node*>("value-truncatable", special);
  show<Golden::Text*>("value-box", new Golden::Text("boxed"));
}

void types() {
  show("tc-long", CORBA::_tc_long);
  show("tc-point", Golden::_tc_Point);
  show("tc-pair", Golden::_tc_Pair);
  show("tc-colour", Golden::_tc_Colour);
  show("tc-amounts", Golden::_tc_Amounts);
  show("tc-name", Golden::_tc_Name);
  show("tc-matrix", Golden::_tc_Matrix);
  show("tc-price", Golden::_tc_Price);
  show("tc-choice", Golden::_tc_Choice);
  show("tc-letter", Golden::_tc_Letter);
  show("tc-flag", Golden::_tc_Flag);
  show("tc-nested", Golden::_tc_Nested);
  show("tc-everything", Golden::_tc_Everything);
  show("tc-tree", Golden::_tc_Tree);
  show("tc-outer", Golden::_tc_Outer);
  show("tc-broke", Golden::_tc_Broke);
  show("tc-node", Golden::_tc_Node);
  show("tc-special", Golden::_tc_Special);
  show("tc-text", Golden::_tc_Text);
  show("tc-vague", Golden::_tc_Vague);
  show("tc-plain", Golden::_tc_Plain);
  show("tc-object", CORBA::_tc_Object);
}

void constructed() {
  Golden::Pair pair;
  pair.first = point(1, 2.5);
  pair.second = point(-3, -4.5);
  show("pair", pair);
  Golden::Choice choice;
  choice.text("blau");
  choice._d(Golden::blue);
  show("choice", choice);
  Golden::Flag flag;
  flag._d(false);
  show("flag-none", flag);
  Golden::Tree tree;
  tree.value = 1;
  tree.children.length(2);
  tree.children[0].value = 2;
  tree.children[1].value = 3;
  tree.children[1].children.length(1);
  tree.children[1].children[0].value = 4;
  show("tree", tree);
  Golden::Everything all;
  all.o = 0xfe; all.b = true; all.c = 'z'; all.s = -2; all.us = 65535; all.l = -70000; all.ul = 4000000000u;
  all.ll = -5000000000ll; all.ull = 18000000000000000000ull; all.f = 0.5f; all.d = -1e100; all.words = "text"; all.called = "name";
  all.paint = Golden::green;
  all.sums.length(2);
  all.sums[0] = 7;
  all.sums[1] = -7;
  for (int i = 0; i < 6; ++i) all.rows[i / 3][i % 3] = static_cast<CORBA::Octet>(i);

  all.chosen.number(9);
  show("everything", all);
  Golden::Amounts amounts;
  amounts.length(1);
  amounts[0] = 11;
  show("amounts", amounts);
  Golden::Broke broke("glass", 3);
  show("broke", broke);
}

void simple(CORBA::ORB_ptr orb) {
  print("null", CORBA::Any());
  show("long", CORBA::Long(5));
  show("double", 2.5);
  show("string", "hello");
  CORBA::Any any;
  any <<= CORBA::Any::from_wchar(0x20ac);
  print("wchar", any);
  any <<= CORBA::Any::from_wstring(const_cast<CORBA::WChar*>(L"wide"), 0);
  print("wstring", any);
  any <<= CORBA::Any::from_fixed(CORBA::Fixed("-1.25"), 9, 2);
  print("fixed", any);
  CORBA::Any outer;
  outer <<= any;
  print("any", outer);
  show<CORBA::Object_ptr>("object-nil", CORBA::Object::_nil());
  CORBA::Object_var object = orb->string_to_object("corbaloc::localhost:9/key");
  show<CORBA::Object_ptr>("object", object);
}

int echo() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string name, order, hex;
    words >> name >> order >> hex;
    std::vector<unsigned char> octets;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      octets.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    try {
      cdrMemoryStream in(octets.data(), octets.size());
      in.setByteSwapFlag(order == "little");
      CORBA::Any any;
      any <<= in;
      print(name, any, order == "little");
    } catch (const CORBA::Exception& error) {
      std::printf("%s %s refused %s\n", name.c_str(), order.c_str(), error._name());
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (argc > 1 && std::string(argv[1]) == "--echo") return echo();
  simple(orb);
  types();
  constructed();
  values();
  return 0;
}
