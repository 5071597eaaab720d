/* Decodes, prints and encodes values by libtirpc; README.md has the commands. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/rpc.h>

enum { MAX_TEXT = 40, MAX_OPAQUE = 64, MAX_POINTS = 10, MAX_MESSAGE = 1 << 20 };

enum color { RED = 0, GREEN = 1, BLUE = -3 };

struct point {
    int x;
    double y;
};

struct shape {
    enum color color;
    union {
        int number;
        char *name;
    } of;
};

struct node {
    u_int item;
    struct node *next;
};

/* `default` of this union has a float. */
struct outcome {
    int code;
    union {
        uint64_t octets;
        float ratio;
    } of;
};

struct sample {
    int i;
    u_int u;
    enum color color;
    bool_t flag;
    int64_t h;
    uint64_t uh;
    float f;
    double d;
    char quadruple[16];
    char fixed[5];
    u_int opaque_len;
    char *opaque;
    char *text;
    int numbers[3];
    u_int points_len;
    struct point *points;
    struct shape shape;
    struct outcome outcome;
    int *optional;
    struct node *list;
};

static bool_t xdr_color(XDR *x, enum color *value) {
    enum_t number = *value;
    if (!xdr_enum(x, &number)) return FALSE;
    if (number != RED && number != GREEN && number != BLUE) return FALSE;
    *value = number;
    return TRUE;
}

static bool_t xdr_point(XDR *x, struct point *point) { return xdr_int(x, &point->x) && xdr_double(x, &point->y); }

static bool_t xdr_shape(XDR *x, struct shape *shape) {
    if (!xdr_color(x, &shape->color)) return FALSE;
    switch (shape->color) {
    case RED: return TRUE;
    case GREEN: return xdr_int(x, &shape->of.number);
    default: return xdr_string(x, &shape->of.name, MAX_TEXT);
    }
}

static bool_t xdr_outcome(XDR *x, struct outcome *outcome) {
    if (!xdr_int(x, &outcome->code)) return FALSE;
    switch (outcome->code) {
    case 0: return xdr_uint64_t(x, &outcome->of.octets);
    case 2: return TRUE;
    default: return xdr_float(x, &outcome->of.ratio);
    }
}

static bool_t xdr_node(XDR *x, struct node *node) {
    return xdr_u_int(x, &node->item) &&
           xdr_pointer(x, (char **)&node->next, sizeof(struct node), (xdrproc_t)xdr_node);
}

static bool_t xdr_sample(XDR *x, struct sample *s) {
    return xdr_int(x, &s->i) && xdr_u_int(x, &s->u) && xdr_color(x, &s->color) && xdr_bool(x, &s->flag) &&
           xdr_int64_t(x, &s->h) && xdr_uint64_t(x, &s->uh) && xdr_float(x, &s->f) && xdr_double(x, &s->d) &&
           xdr_opaque(x, s->quadruple, sizeof s->quadruple) && xdr_opaque(x, s->fixed, sizeof s->fixed) &&
           xdr_bytes(x, &s->opaque, &s->opaque_len, MAX_OPAQUE) && xdr_string(x, &s->text, MAX_TEXT) &&
           xdr_vector(x, (char *)s->numbers, 3, sizeof(int), (xdrproc_t)xdr_int) &&
           xdr_array(x, (char **)&s->points, &s->points_len, MAX_POINTS, sizeof(struct point), (xdrproc_t)xdr_point) &&
           xdr_shape(x, &s->shape) && xdr_outcome(x, &s->outcome) &&
           xdr_pointer(x, (char **)&s->optional, sizeof(int), (xdrproc_t)xdr_int) &&
           xdr_pointer(x, (char **)&s->list, sizeof(struct node), (xdrproc_t)xdr_node);
}

/* The text of a value. */
static char text[MAX_MESSAGE];
static size_t text_len;

static void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text + text_len, sizeof text - text_len, format, arguments);
    va_end(arguments);
    if (len < 0 || (size_t)len >= sizeof text - text_len) abort();
    text_len += (size_t)len;
}

static void add_octets(const char *octets, size_t len) {
    for (size_t at = 0; at < len; at++) add("%02x", (unsigned char)octets[at]);
    add(" ");
}

static void add_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add("%08" PRIx32 " ", bits);
}

static void add_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add("%016" PRIx64 " ", bits);
}

static void describe(const struct sample *s) {
    text_len = 0;
    add("%d %u %d %d %" PRId64 " %" PRIu64 " ", s->i, s->u, (int)s->color, s->flag, s->h, s->uh);
    add_float(s->f);
    add_double(s->d);
    add_octets(s->quadruple, sizeof s->quadruple);
    add_octets(s->fixed, sizeof s->fixed);
    add_octets(s->opaque, s->opaque_len);
    add_octets(s->text, strlen(s->text));
    add("%d %d %d ", s->numbers[0], s->numbers[1], s->numbers[2]);
    for (u_int at = 0; at < s->points_len; at++) {
        add("%d ", s->points[at].x);
        add_double(s->points[at].y);
    }
    switch (s->shape.color) {
    case RED: add("red "); break;
    case GREEN: add("green %d ", s->shape.of.number); break;
    default: add("blue "), add_octets(s->shape.of.name, strlen(s->shape.of.name));
    }
    switch (s->outcome.code) {
    case 0: add("done %" PRIu64 " ", s->outcome.of.octets); break;
    case 2: add("absent "); break;
    default: add("failed %d ", s->outcome.code), add_float(s->outcome.of.ratio);
    }
    if (s->optional) add("some %d ", *s->optional);
    else add("none ");
    for (const struct node *node = s->list; node; node = node->next) add("%u ", node->item);
}

/* Random values (SplitMix64). */
static uint64_t state;

static uint64_t next(void) {
    uint64_t mixed = state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

static void *zeroed(size_t len) {
    void *memory = calloc(1, len ? len : 1);
    if (!memory) abort();
    return memory;
}

static char *random_text(void) {
    size_t len = next() % (MAX_TEXT + 1);
    char *made = zeroed(len + 1);
    for (size_t at = 0; at < len; at++) made[at] = (char)(' ' + next() % 95);
    return made;
}

static void random_octets(char *octets, size_t len) {
    for (size_t at = 0; at < len; at++) octets[at] = (char)next();
}

static void make(struct sample *s) {
    static const enum color colors[] = {RED, GREEN, BLUE};
    s->i = (int)next(), s->u = (u_int)next(), s->color = colors[next() % 3], s->flag = (bool_t)(next() & 1);
    s->h = (int64_t)next(), s->uh = next();
    s->f = (float)(int32_t)next() / 7, s->d = (double)(int64_t)next() / 7;
    random_octets(s->quadruple, sizeof s->quadruple);
    random_octets(s->fixed, sizeof s->fixed);
    s->opaque_len = (u_int)(next() % (MAX_OPAQUE + 1));
    s->opaque = zeroed(s->opaque_len);
    random_octets(s->opaque, s->opaque_len);
    s->text = random_text();
    for (int at = 0; at < 3; at++) s->numbers[at] = (int)next();
    s->points_len = (u_int)(next() % (MAX_POINTS + 1));
    s->points = zeroed(s->points_len * sizeof(struct point));
    for (u_int at = 0; at < s->points_len; at++) {
        s->points[at].x = (int)next(), s->points[at].y = (double)(int32_t)next() / 3;
    }
    s->shape.color = colors[next() % 3];
    if (s->shape.color == GREEN) s->shape.of.number = (int)next();
    if (s->shape.color == BLUE) s->shape.of.name = random_text();
    s->outcome.code = (int)(next() % 5) - 1;
    if (s->outcome.code == 0) s->outcome.of.octets = next();
    else if (s->outcome.code != 2) s->outcome.of.ratio = (float)(int32_t)next() / 5;
    if (next() & 1) {
        s->optional = zeroed(sizeof(int));
        *s->optional = (int)next();
    }
    for (uint64_t left = next() % 20; left > 0; left--) {
        struct node *node = zeroed(sizeof *node);
        node->item = (u_int)next(), node->next = s->list, s->list = node;
    }
}

static int read_word(uint32_t *word) {
    unsigned char octets[4];
    if (fread(octets, 1, 4, stdin) != 4) return 0;
    *word = (uint32_t)octets[0] << 24 | (uint32_t)octets[1] << 16 | (uint32_t)octets[2] << 8 | octets[3];
    return 1;
}

static void write_word(uint32_t word) {
    unsigned char octets[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16), (unsigned char)(word >> 8),
                               (unsigned char)word};
    fwrite(octets, 1, 4, stdout);
}

static void answer(struct sample *sample) {
    static char encoded[MAX_MESSAGE];
    XDR out;
    xdrmem_create(&out, encoded, sizeof encoded, XDR_ENCODE);
    if (!xdr_sample(&out, sample)) abort();
    u_int len = xdr_getpos(&out);
    describe(sample);
    write_word(1);
    write_word(len);
    fwrite(encoded, 1, len, stdout);
    write_word((uint32_t)text_len);
    fwrite(text, 1, text_len, stdout);
}

int main(void) {
    static char message[MAX_MESSAGE];
    uint32_t command, word;
    while (read_word(&command) && read_word(&word)) {
        struct sample sample;
        memset(&sample, 0, sizeof sample);
        if (command == 1) {
            state = word;
            make(&sample);
            answer(&sample);
        } else {
            if (word > sizeof message || fread(message, 1, word, stdin) != word) return 1;
            XDR in;
            xdrmem_create(&in, message, word, XDR_DECODE);
            if (xdr_sample(&in, &sample) && xdr_getpos(&in) == word) answer(&sample);
            else write_word(0);
        }
        xdr_free((xdrproc_t)xdr_sample, &sample);
        fflush(stdout);
    }
    return 0;
}
