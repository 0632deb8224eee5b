# bash completion for consan and consan-run: the options that --help lists; other arguments
# are files, or for consan-run commands.
_consan_options()
{
	compgen -W "$("$@" --help 2>/dev/null | grep -o -- '--[a-z][-a-z]*=\?' | sort -u)" -- "$cur"
}

_consan_run()
{
	local cur=${COMP_WORDS[COMP_CWORD]}

	case $cur in
	-*)
		COMPREPLY=($(_consan_options consan-run))
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
		;;
	*)
		COMPREPLY=($(compgen -c -- "$cur"))
		compopt -o default
		;;
	esac
}

_consan()
{
	local cur=${COMP_WORDS[COMP_CWORD]}

	if [[ $COMP_CWORD -eq 1 ]]; then
		COMPREPLY=($(compgen -W "$(consan --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$cur"))
		return
	fi
	[[ $cur == -* ]] && COMPREPLY=($(_consan_options consan "${COMP_WORDS[1]}"))
	[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	compopt -o default
}

complete -F _consan_run consan-run
complete -F _consan consan
