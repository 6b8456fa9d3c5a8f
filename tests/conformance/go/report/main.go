// Command report turns the stream of `go test -json` into one line a test, and fails if any test did.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode"
)

type testEvent struct {
	Action, Test, Output string
}

// sentence turns TestATimerFires into "a timer fires".
func sentence(test string) string {
	var words strings.Builder
	for position, letter := range strings.TrimPrefix(test, "Test") {
		if unicode.IsUpper(letter) && position > 0 {
			words.WriteByte(' ')
		}
		words.WriteRune(unicode.ToLower(letter))
	}
	return words.String()
}

// reason picks the first line that an assertion wrote.
func reason(output string) string {
	for line := range strings.Lines(output) {
		if text := strings.TrimSpace(line); strings.Contains(text, "_test.go:") || strings.HasPrefix(text, "panic:") {
			return text
		}
	}
	return "see the details on stderr"
}

func main() {
	output := map[string]string{}
	passed, failed := 0, 0
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event testEvent
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			fmt.Fprintln(os.Stderr, lines.Text())
			continue
		}
		output[event.Test] += event.Output
		switch {
		case event.Test == "" && event.Action == "fail":
			failed++
			fmt.Fprint(os.Stderr, output[""])
		case event.Test == "" || event.Action == "output":
		case event.Action == "pass":
			passed++
			fmt.Println("ok - go:", sentence(event.Test))
		case event.Action == "fail":
			failed++
			fmt.Printf("not ok - go: %s: %s\n", sentence(event.Test), reason(output[event.Test]))
			fmt.Fprint(os.Stderr, output[event.Test])
		}
	}
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}
