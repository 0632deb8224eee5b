/* similar: the word that is spelled most like another one, for "did you mean". */
#ifndef CONSAN_SIMILAR_H
#define CONSAN_SIMILAR_H

/* Zero it and set `word`; call similar_try() for each candidate. best: the candidate that needs the
 * fewest changed characters, or NULL if all need too many. Upper and lower case are the same, and
 * so are '-' and '_'. */
struct similar {
	const char *word;
	const char *best;
	unsigned changes; /* of best */
};
void similar_try(struct similar *s, const char *candidate);

#endif
