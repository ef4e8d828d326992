package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// figuresFile holds the committed ratios by line and comparison.
const figuresFile = "figures.json"

type figures map[string]map[string]float64

func readFigures(dir string) (figures, error) {
	text, err := os.ReadFile(filepath.Join(dir, figuresFile))
	if errors.Is(err, fs.ErrNotExist) {
		return figures{}, nil
	}
	if err != nil {
		return nil, err
	}
	var f figures
	return f, json.Unmarshal(text, &f)
}

// writeFigures replaces the measured ratios and keeps the others.
func writeFigures(dir string, measured []results) error {
	f, err := readFigures(dir)
	if err != nil {
		return fmt.Errorf("reading the committed figures: %w", err)
	}
	for _, r := range measured {
		if f[r.line.name] == nil {
			f[r.line.name] = map[string]float64{}
		}
		for _, c := range r.compared() {
			f[r.line.name][c.name()], _ = strconv.ParseFloat(short(r.compare(c).median), 64)
		}
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, figuresFile), append(text, '\n'), 0o644)
}

// compared returns the comparisons whose servers were measured.
func (r results) compared() (all []comparison) {
	for _, c := range r.line.compare {
		_, ours := r.median(c.ours, c.metric)
		_, peers := r.median(c.peer, c.metric)
		if ours && (peers || c.peer == "") {
			all = append(all, c)
		}
	}
	return all
}
