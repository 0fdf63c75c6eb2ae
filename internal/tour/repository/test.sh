#!/bin/sh
got=$(sh greet.sh Ann)
if [ "$got" != "Hello, Ann!" ]; then
	echo "FAIL: got \"$got\", want \"Hello, Ann!\""
	exit 1
fi
echo "ok"
