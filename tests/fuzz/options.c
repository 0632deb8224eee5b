/* options: words as in $CONSAN_OPTIONS, and a configuration file. What is set is written as words that
 * set the same. */
#include "fuzz.h"

#include "libconsan/options/options.h"

static void read_again(const struct options *o)
{
	struct options again;
	struct text words = { 0 }, same = { 0 };
	struct consan_err e = { 0 };

	text_add(&words, "", 0);
	text_add(&same, "", 0);
	options_format(o, &words);
	options_init(&again);
	FUZZ_CHECK(options_parse(&again, words.at, &e));
	options_format(&again, &same);
	FUZZ_CHECK(!strcmp(words.at, same.at));
	options_free(&again);
	text_free(&words);
	text_free(&same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *words = base_strndup((const char *)data, n);
	unsigned i, of;
	char suffix;

	for (unsigned file = 0; file < 2; file++) {
		struct consan_err e = { 0 };
		struct options o;

		options_init(&o);
		if (file ? options_config(&o, fuzz_file(data, n), &e) : options_parse(&o, words, &e)) {
			options_agree(&o, &e);
			read_again(&o);
			options_wants(&o, "_Z6kernelIfEvPT_i", "kernel<float>");
		} else {
			FUZZ_CHECK(e.code);
		}
		options_free(&o);
	}
	options_arch(words, &i, &suffix);
	options_shard(words, &i, &of);
	free(options_path(words, 7));
	free(words);
	return 0;
}
