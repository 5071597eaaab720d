// Command line options of all latency peers.
#ifndef PIN_HH
#define PIN_HH

#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

/// Removes `name value` from the arguments; returns `otherwise` if it is missing.
inline const char *take_text(int &argc, char **argv, const char *name, const char *otherwise) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::strcmp(argv[i], name) != 0) continue;
        const char *value = argv[i + 1];
        for (int j = i; j + 2 <= argc; ++j) argv[j] = argv[j + 2];
        argc -= 2;
        return value;
    }
    return otherwise;
}
inline long take_number(int &argc, char **argv, const char *name, long otherwise) {
    const char *text = take_text(argc, argv, name, nullptr);
    if (!text) return otherwise;
    char *end;
    long value = std::strtol(text, &end, 10);
    if (*end || end == text || value < 0) {
        std::cerr << argv[0] << ": " << name << " wants a number, not " << text << std::endl;
        std::exit(2);
    }
    return value;
}

/// Binds this process to one processor; a negative number leaves it free.
inline void pin(long cpu) {
    if (cpu < 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<int>(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        std::perror("sched_setaffinity");
        std::exit(1);
    }
}

#endif
