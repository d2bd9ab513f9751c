/* builtin.h - data of the built-in tokenizer. */
#ifndef VT_TEXT_BUILTIN_H
#define VT_TEXT_BUILTIN_H

/* Lines of words in small letters, each with a space behind it; NULL at the end. */
extern const char *const builtin_words[];
extern const char *const builtin_endings[];

#endif
