package service

import (
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Mistakes of a service", Label("F9", "configuration"), func() {
	It("are about settings that exist", func() {
		names, checked := DefaultConfig().Table().Names(), 0
		files, err := filepath.Glob("*.go")
		Expect(err).NotTo(HaveOccurred())
		named := regexp.MustCompile(`(?:NewMistake|mistaken|wrong)\("([^"]+)"`)
		for _, file := range files {
			source, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			for _, found := range named.FindAllStringSubmatch(string(source), -1) {
				Expect(names).To(ContainElement(found[1]), file)
				checked++
			}
		}
		Expect(checked).To(BeNumerically(">", 25))
	})

	It("are not about the defaults, which are those of a host", func() {
		config := DefaultConfig().authorization()
		for _, lifetime := range config.Lifetimes() {
			value := *lifetime.Value
			if value == 0 {
				value = oauth.Off
			}
			Expect(value).To(Equal(lifetime.Default), lifetime.Field)
		}
		Expect(config.Limits).To(Equal(oauth.DefaultLimits()))
	})
})
