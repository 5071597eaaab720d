//! Code sets of one octet per character: the characters of the upper half; the lower half is ASCII.
//!
//! `\u{fffd}` marks an unassigned octet.

/// The characters of the octets from 128 on, as UTF-16; zero for an unassigned octet.
pub(super) type Upper = [u16; 128];

pub(super) static ISO_8859_2: Upper = above_controls(
    "\u{a0}Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{ad}ŽŻ\
     °ą˛ł´ľśˇ¸šşťź˝žż\
     ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎ\
     ĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢß\
     ŕáâăäĺćçčéęëěíîď\
     đńňóôőö÷řůúűüýţ˙",
);

pub(super) static ISO_8859_3: Upper = above_controls(
    "\u{a0}Ħ˘£¤�Ĥ§¨İŞĞĴ\u{ad}�Ż\
     °ħ²³´µĥ·¸ışğĵ½�ż\
     ÀÁÂ�ÄĊĈÇÈÉÊËÌÍÎÏ\
     �ÑÒÓÔĠÖ×ĜÙÚÛÜŬŜß\
     àáâ�äċĉçèéêëìíîï\
     �ñòóôġö÷ĝùúûüŭŝ˙",
);

pub(super) static ISO_8859_4: Upper = above_controls(
    "\u{a0}ĄĸŖ¤ĨĻ§¨ŠĒĢŦ\u{ad}Ž¯\
     °ą˛ŗ´ĩļˇ¸šēģŧŊžŋ\
     ĀÁÂÃÄÅÆĮČÉĘËĖÍÎĪ\
     ĐŅŌĶÔÕÖ×ØŲÚÛÜŨŪß\
     āáâãäåæįčéęëėíîī\
     đņōķôõö÷øųúûüũū˙",
);

pub(super) static ISO_8859_5: Upper = above_controls(
    "\u{a0}ЁЂЃЄЅІЇЈЉЊЋЌ\u{ad}ЎЏ\
     АБВГДЕЖЗИЙКЛМНОП\
     РСТУФХЦЧШЩЪЫЬЭЮЯ\
     абвгдежзийклмноп\
     рстуфхцчшщъыьэюя\
     №ёђѓєѕіїјљњћќ§ўџ",
);

pub(super) static ISO_8859_6: Upper = above_controls(
    "\u{a0}���¤�������،\u{ad}��\
     �����������\u{61b}���\u{61f}\
     �\u{621}\u{622}\u{623}\u{624}\u{625}\u{626}\u{627}\u{628}\u{629}\u{62a}\u{62b}\u{62c}\u{62d}\u{62e}\u{62f}\
     \u{630}\u{631}\u{632}\u{633}\u{634}\u{635}\u{636}\u{637}\u{638}\u{639}\u{63a}�����\
     \u{640}\u{641}\u{642}\u{643}\u{644}\u{645}\u{646}\u{647}\u{648}\u{649}\u{64a}\u{64b}\u{64c}\u{64d}\u{64e}\u{64f}\
     \u{650}\u{651}\u{652}�������������",
);

pub(super) static ISO_8859_7: Upper = above_controls(
    "\u{a0}‘’£€₯¦§¨©ͺ«¬\u{ad}�―\
     °±²³΄΅Ά·ΈΉΊ»Ό½ΎΏ\
     ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟ\
     ΠΡ�ΣΤΥΦΧΨΩΪΫάέήί\
     ΰαβγδεζηθικλμνξο\
     πρςστυφχψωϊϋόύώ�",
);

pub(super) static ISO_8859_8: Upper = above_controls(
    "\u{a0}�¢£¤¥¦§¨©×«¬\u{ad}®¯\
     °±²³´µ¶·¸¹÷»¼½¾�\
     ����������������\
     ���������������‗\
     \u{5d0}\u{5d1}\u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\u{5db}\u{5dc}\u{5dd}\u{5de}\u{5df}\
     \u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\u{5e8}\u{5e9}\u{5ea}��\u{200e}\u{200f}�",
);

pub(super) static ISO_8859_9: Upper = above_controls(
    "\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯\
     °±²³´µ¶·¸¹º»¼½¾¿\
     ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\
     ĞÑÒÓÔÕÖ×ØÙÚÛÜİŞß\
     àáâãäåæçèéêëìíîï\
     ğñòóôõö÷øùúûüışÿ",
);

pub(super) static ISO_8859_10: Upper = above_controls(
    "\u{a0}ĄĒĢĪĨĶ§ĻĐŠŦŽ\u{ad}ŪŊ\
     °ąēģīĩķ·ļđšŧž―ūŋ\
     ĀÁÂÃÄÅÆĮČÉĘËĖÍÎÏ\
     ÐŅŌÓÔÕÖŨØŲÚÛÜÝÞß\
     āáâãäåæįčéęëėíîï\
     ðņōóôõöũøųúûüýþĸ",
);

pub(super) static ISO_8859_11: Upper = above_controls(
    "\u{a0}กขฃคฅฆงจฉชซฌญฎฏ\
     ฐฑฒณดตถทธนบปผฝพฟ\
     ภมยรฤลฦวศษสหฬอฮฯ\
     ะ\u{e31}าำ\u{e34}\u{e35}\u{e36}\u{e37}\u{e38}\u{e39}\u{e3a}����฿\
     เแโใไๅๆ\u{e47}\u{e48}\u{e49}\u{e4a}\u{e4b}\u{e4c}\u{e4d}\u{e4e}๏\
     ๐๑๒๓๔๕๖๗๘๙๚๛����",
);

pub(super) static ISO_8859_13: Upper = above_controls(
    "\u{a0}”¢£¤„¦§Ø©Ŗ«¬\u{ad}®Æ\
     °±²³“µ¶·ø¹ŗ»¼½¾æ\
     ĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻ\
     ŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽß\
     ąįāćäåęēčéźėģķīļ\
     šńņóōõö÷ųłśūüżž’",
);

pub(super) static ISO_8859_14: Upper = above_controls(
    "\u{a0}Ḃḃ£ĊċḊ§Ẁ©ẂḋỲ\u{ad}®Ÿ\
     ḞḟĠġṀṁ¶ṖẁṗẃṠỳẄẅṡ\
     ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\
     ŴÑÒÓÔÕÖṪØÙÚÛÜÝŶß\
     àáâãäåæçèéêëìíîï\
     ŵñòóôõöṫøùúûüýŷÿ",
);

pub(super) static ISO_8859_15: Upper = above_controls(
    "\u{a0}¡¢£€¥Š§š©ª«¬\u{ad}®¯\
     °±²³Žµ¶·ž¹º»ŒœŸ¿\
     ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\
     ÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß\
     àáâãäåæçèéêëìíîï\
     ðñòóôõö÷øùúûüýþÿ",
);

pub(super) static ISO_8859_16: Upper = above_controls(
    "\u{a0}ĄąŁ€„Š§š©Ș«Ź\u{ad}źŻ\
     °±ČłŽ”¶·žčș»ŒœŸż\
     ÀÁÂĂÄĆÆÇÈÉÊËÌÍÎÏ\
     ĐŃÒÓÔŐÖŚŰÙÚÛÜĘȚß\
     àáâăäćæçèéêëìíîï\
     đńòóôőöśűùúûüęțÿ",
);

/// Windows code page 1250.
pub(super) static WINDOWS_1250: Upper = upper(
    "€�‚�„…†‡�‰Š‹ŚŤŽŹ\
     �‘’“”•–—�™š›śťžź\
     \u{a0}ˇ˘Ł¤Ą¦§¨©Ş«¬\u{ad}®Ż\
     °±˛ł´µ¶·¸ąş»Ľ˝ľż\
     ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎ\
     ĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢß\
     ŕáâăäĺćçčéęëěíîď\
     đńňóôőö÷řůúűüýţ˙",
);

/// Windows code page 1251.
pub(super) static WINDOWS_1251: Upper = upper(
    "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏ\
     ђ‘’“”•–—�™љ›њќћџ\
     \u{a0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{ad}®Ї\
     °±Ііґµ¶·ё№є»јЅѕї\
     АБВГДЕЖЗИЙКЛМНОП\
     РСТУФХЦЧШЩЪЫЬЭЮЯ\
     абвгдежзийклмноп\
     рстуфхцчшщъыьэюя",
);

/// Windows code page 1252.
pub(super) static WINDOWS_1252: Upper = upper(
    "€�‚ƒ„…†‡ˆ‰Š‹Œ�Ž�\
     �‘’“”•–—˜™š›œ�žŸ\
     \u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯\
     °±²³´µ¶·¸¹º»¼½¾¿\
     ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\
     ÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß\
     àáâãäåæçèéêëìíîï\
     ðñòóôõö÷øùúûüýþÿ",
);

/// Windows code page 1253.
pub(super) static WINDOWS_1253: Upper = upper(
    "€�‚ƒ„…†‡�‰�‹����\
     �‘’“”•–—�™�›����\
     \u{a0}΅Ά£¤¥¦§¨©�«¬\u{ad}®―\
     °±²³΄µ¶·ΈΉΊ»Ό½ΎΏ\
     ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟ\
     ΠΡ�ΣΤΥΦΧΨΩΪΫάέήί\
     ΰαβγδεζηθικλμνξο\
     πρςστυφχψωϊϋόύώ�",
);

/// Windows code page 1254.
pub(super) static WINDOWS_1254: Upper = upper(
    "€�‚ƒ„…†‡ˆ‰Š‹Œ���\
     �‘’“”•–—˜™š›œ��Ÿ\
     \u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯\
     °±²³´µ¶·¸¹º»¼½¾¿\
     ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\
     ĞÑÒÓÔÕÖ×ØÙÚÛÜİŞß\
     àáâãäåæçèéêëìíîï\
     ğñòóôõö÷øùúûüışÿ",
);

/// Windows code page 1255.
pub(super) static WINDOWS_1255: Upper = upper(
    "€�‚ƒ„…†‡ˆ‰�‹����\
     �‘’“”•–—˜™�›����\
     \u{a0}¡¢£₪¥¦§¨©×«¬\u{ad}®¯\
     °±²³´µ¶·¸¹÷»¼½¾¿\
     \u{5b0}\u{5b1}\u{5b2}\u{5b3}\u{5b4}\u{5b5}\u{5b6}\u{5b7}\u{5b8}\u{5b9}�\u{5bb}\u{5bc}\u{5bd}\u{5be}\u{5bf}\
     \u{5c0}\u{5c1}\u{5c2}\u{5c3}\u{5f0}\u{5f1}\u{5f2}\u{5f3}\u{5f4}�������\
     \u{5d0}\u{5d1}\u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\u{5db}\u{5dc}\u{5dd}\u{5de}\u{5df}\
     \u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\u{5e8}\u{5e9}\u{5ea}��\u{200e}\u{200f}�",
);

/// Windows code page 1256.
pub(super) static WINDOWS_1256: Upper = upper(
    "€\u{67e}‚ƒ„…†‡ˆ‰\u{679}‹Œ\u{686}\u{698}\u{688}\
     \u{6af}‘’“”•–—\u{6a9}™\u{691}›œ\u{200c}\u{200d}\u{6ba}\
     \u{a0}،¢£¤¥¦§¨©\u{6be}«¬\u{ad}®¯\
     °±²³´µ¶·¸¹\u{61b}»¼½¾\u{61f}\
     \u{6c1}\u{621}\u{622}\u{623}\u{624}\u{625}\u{626}\u{627}\u{628}\u{629}\u{62a}\u{62b}\u{62c}\u{62d}\u{62e}\u{62f}\
     \u{630}\u{631}\u{632}\u{633}\u{634}\u{635}\u{636}×\u{637}\u{638}\u{639}\u{63a}\u{640}\u{641}\u{642}\u{643}\
     à\u{644}â\u{645}\u{646}\u{647}\u{648}çèéêë\u{649}\u{64a}îï\
     \u{64b}\u{64c}\u{64d}\u{64e}ô\u{64f}\u{650}÷\u{651}ù\u{652}ûü\u{200e}\u{200f}\u{6d2}",
);

/// Windows code page 1257.
pub(super) static WINDOWS_1257: Upper = upper(
    "€�‚�„…†‡�‰�‹�¨ˇ¸\
     �‘’“”•–—�™�›�¯˛�\
     \u{a0}�¢£¤�¦§Ø©Ŗ«¬\u{ad}®Æ\
     °±²³´µ¶·ø¹ŗ»¼½¾æ\
     ĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻ\
     ŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽß\
     ąįāćäåęēčéźėģķīļ\
     šńņóōõö÷ųłśūüżž˙",
);

/// Windows code page 1258.
pub(super) static WINDOWS_1258: Upper = upper(
    "€�‚ƒ„…†‡ˆ‰�‹Œ���\
     �‘’“”•–—˜™�›œ��Ÿ\
     \u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯\
     °±²³´µ¶·¸¹º»¼½¾¿\
     ÀÁÂĂÄÅÆÇÈÉÊË\u{300}ÍÎÏ\
     ĐÑ\u{309}ÓÔƠÖ×ØÙÚÛÜƯ\u{303}ß\
     àáâăäåæçèéêë\u{301}íîï\
     đñ\u{323}óôơö÷øùúûüư₫ÿ",
);

/// IBM's code page 437.
pub(super) static IBM_437: Upper = upper(
    "ÇüéâäàåçêëèïîìÄÅ\
     ÉæÆôöòûùÿÖÜ¢£¥₧ƒ\
     áíóúñÑªº¿⌐¬½¼¡«»\
     ░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
     └┴┬├─┼╞╟╚╔╩╦╠═╬╧\
     ╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
     αßΓπΣσµτΦΘΩδ∞φε∩\
     ≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
);

/// IBM's code page 850.
pub(super) static IBM_850: Upper = upper(
    "ÇüéâäàåçêëèïîìÄÅ\
     ÉæÆôöòûùÿÖÜø£Ø×ƒ\
     áíóúñÑªº¿®¬½¼¡«»\
     ░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
     └┴┬├─┼ãÃ╚╔╩╦╠═╬¤\
     ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀\
     ÓßÔÒõÕµþÞÚÛÙýÝ¯´\
     \u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
);

/// IBM's code page 852.
pub(super) static IBM_852: Upper = upper(
    "ÇüéâäůćçłëŐőîŹÄĆ\
     ÉĹĺôöĽľŚśÖÜŤťŁ×č\
     áíóúĄąŽžĘę¬źČş«»\
     ░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐\
     └┴┬├─┼Ăă╚╔╩╦╠═╬¤\
     đĐĎËďŇÍÎě┘┌█▄ŢŮ▀\
     ÓßÔŃńňŠšŔÚŕŰýÝţ´\
     \u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}",
);

/// IBM's code page 855.
pub(super) static IBM_855: Upper = upper(
    "ђЂѓЃёЁєЄѕЅіІїЇјЈ\
     љЉњЊћЋќЌўЎџЏюЮъЪ\
     аАбБцЦдДеЕфФгГ«»\
     ░▒▓│┤хХиИ╣║╗╝йЙ┐\
     └┴┬├─┼кК╚╔╩╦╠═╬¤\
     лЛмМнНоОп┘┌█▄Пя▀\
     ЯрРсСтТуУжЖвВьЬ№\
     \u{ad}ыЫзЗшШэЭщЩчЧ§■\u{a0}",
);

/// IBM's code page 857.
pub(super) static IBM_857: Upper = upper(
    "ÇüéâäàåçêëèïîıÄÅ\
     ÉæÆôöòûùİÖÜø£ØŞş\
     áíóúñÑĞğ¿®¬½¼¡«»\
     ░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
     └┴┬├─┼ãÃ╚╔╩╦╠═╬¤\
     ºªÊËÈ�ÍÎÏ┘┌█▄¦Ì▀\
     ÓßÔÒõÕµ�×ÚÛÙìÿ¯´\
     \u{ad}±�¾¶§÷¸°¨·¹³²■\u{a0}",
);

/// IBM's code page 866.
pub(super) static IBM_866: Upper = upper(
    "АБВГДЕЖЗИЙКЛМНОП\
     РСТУФХЦЧШЩЪЫЬЭЮЯ\
     абвгдежзийклмноп\
     ░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
     └┴┬├─┼╞╟╚╔╩╦╠═╬╧\
     ╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
     рстуфхцчшщъыьэюя\
     ЁёЄєЇїЎў°∙·√№¤■\u{a0}",
);

/// KOI8-R, for Russian (RFC 1489).
pub(super) static KOI8_R: Upper = upper(
    "─│┌┐└┘├┤┬┴┼▀▄█▌▐\
     ░▒▓⌠■∙√≈≤≥\u{a0}⌡°²·÷\
     ═║╒ё╓╔╕╖╗╘╙╚╛╜╝╞\
     ╟╠╡Ё╢╣╤╥╦╧╨╩╪╫╬©\
     юабцдефгхийклмно\
     пярстужвьызшэщчъ\
     ЮАБЦДЕФГХИЙКЛМНО\
     ПЯРСТУЖВЬЫЗШЭЩЧЪ",
);

/// KOI8-U, for Ukrainian (RFC 2319).
pub(super) static KOI8_U: Upper = upper(
    "─│┌┐└┘├┤┬┴┼▀▄█▌▐\
     ░▒▓⌠■∙√≈≤≥\u{a0}⌡°²·÷\
     ═║╒ёє╔ії╗╘╙╚╛ґ╝╞\
     ╟╠╡ЁЄ╣ІЇ╦╧╨╩╪Ґ╬©\
     юабцдефгхийклмно\
     пярстужвьызшэщчъ\
     ЮАБЦДЕФГХИЙКЛМНО\
     ПЯРСТУЖВЬЫЗШЭЩЧЪ",
);

pub(super) static TIS_620: Upper = upper(
    "����������������\
     ����������������\
     �กขฃคฅฆงจฉชซฌญฎฏ\
     ฐฑฒณดตถทธนบปผฝพฟ\
     ภมยรฤลฦวศษสหฬอฮฯ\
     ะ\u{e31}าำ\u{e34}\u{e35}\u{e36}\u{e37}\u{e38}\u{e39}\u{e3a}����฿\
     เแโใไๅๆ\u{e47}\u{e48}\u{e49}\u{e4a}\u{e4b}\u{e4c}\u{e4d}\u{e4e}๏\
     ๐๑๒๓๔๕๖๗๘๙๚๛����",
);

/// A table whose first quarter holds the controls of ISO 6429, which are not in the text.
const fn above_controls(text: &str) -> Upper {
    let mut table = [0; 128];
    let mut at = 0;
    while at < 32 {
        table[at] = 0x80 + at as u16;
        at += 1;
    }
    fill(table, at, text.as_bytes())
}

const fn upper(text: &str) -> Upper {
    fill([0; 128], 0, text.as_bytes())
}

/// Fills the rest of a table; the text must have exactly its length.
const fn fill(mut table: Upper, mut at: usize, text: &[u8]) -> Upper {
    let mut next = 0;
    while next < text.len() {
        let (unit, len) = unit(text, next);
        table[at] = if unit == 0xfffd { 0 } else { unit };
        at += 1;
        next += len;
    }
    assert!(at == table.len(), "each octet has its character");
    table
}

/// The character at this offset of UTF-8, and its number of octets. All are in the basic plane.
const fn unit(text: &[u8], at: usize) -> (u16, usize) {
    let first = text[at] as u16;
    if first < 0x80 {
        return (first, 1);
    }
    let second = text[at + 1] as u16 & 0x3f;
    if first < 0xe0 {
        return ((first & 0x1f) << 6 | second, 2);
    }
    assert!(first < 0xf0, "all are in the basic plane");
    ((first & 0xf) << 12 | second << 6 | text[at + 2] as u16 & 0x3f, 3)
}
