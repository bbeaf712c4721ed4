// Package jars finds the Java archives of ZooKeeper and Curator, for the tests and benchmarks that
// start them.
package jars

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	env    = "ACTORLOCK_ZOOKEEPER_JARS"
	debian = "/usr/share/java"
)

// zooKeeper has the jars of ZooKeeper's server, client and shell. Debian's names have no version.
//
// The manifests of Debian's jars name others by absolute paths, and Java searches those right after
// the jar. A jar is therefore behind all that its manifest names: a folder with another version
// than the system's would take some of the classes from the system otherwise.
var zooKeeper = []string{"slf4j-api", "slf4j-simple", "metrics-core", "snappy-java", "commons-cli", "commons-io",
	"netty-common", "netty-buffer", "netty-resolver", "netty-transport", "netty-transport-native-unix-common",
	"netty-transport-native-epoll", "netty-codec", "netty-handler", "zookeeper-jute", "zookeeper"}

// Curator has the names of Curator's jars and of those that only Curator needs, for [ClassPath].
var Curator = []string{"guava", "curator-client", "curator-framework", "curator-recipes"}

// Dir returns the folder of the jars, which need not exist: Debian's, unless the environment
// variable ACTORLOCK_ZOOKEEPER_JARS names another.
func Dir() string { return cmp.Or(os.Getenv(env), debian) }

// ClassPath returns the class path of ZooKeeper, and of more jars behind it. The folder has
// Debian's layout, or all jars with their versions as in a release of Apache. ClassPath returns an
// error that names the first jar that is missing.
func ClassPath(more ...string) (string, error) { return classPath(Dir(), more) }

// ClassPathOf returns the class path of ZooKeeper from another folder.
func ClassPathOf(dir string) (string, error) { return classPath(dir, nil) }

func classPath(dir string, more []string) (string, error) {
	debians := exists(dir, "zookeeper")
	for _, name := range append([]string{"zookeeper"}, more...) {
		if debians && !exists(dir, name) || !debians && version(dir, name) == "" {
			return "", fmt.Errorf("no %s.jar in %s", name, dir)
		}
	}
	if !debians {
		return filepath.Join(dir, "*"), nil
	}
	var list []string
	for _, name := range slices.Concat(zooKeeper, more) {
		list = append(list, file(dir, name))
	}
	return strings.Join(list, string(os.PathListSeparator)), nil
}

// Version returns the version in the name of a jar, and "" without one.
func Version(name string) string { return version(Dir(), name) }

func version(dir, name string) string {
	found, _ := filepath.Glob(filepath.Join(dir, name+"-[0-9]*.jar"))
	if len(found) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), name+"-"), ".jar")
}

func file(dir, name string) string { return filepath.Join(dir, name+".jar") }

func exists(dir, name string) bool {
	_, err := os.Stat(file(dir, name))
	return err == nil
}
