# SPDX-License-Identifier: Apache-2.0
# The front door: it installs what is missing (Debian), and calls meson and the scripts in tools/.

PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
SECONDS := 600
TARGETS :=

# What root has built in somebody's checkout is theirs: after sudo make install they can go on.
GIVE_BACK = test "$$(id -u)" != 0 || chown -hR --reference=Makefile $(BUILD)

.PHONY: help run build test coverage soak bench fuzz analyze install docs deb clean fmt deps-build deps-test \
	deps-bench deps-analyze

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: build ## build, and run the example: seed a project, test it, change it, bring it home
	@examples/run.sh $(BUILD)/pinfold

build: deps-build ## leave build/pinfold and build/libpinfold.so
	@{ test -f $(BUILD)/build.ninja || meson setup -Dtests=false $(BUILD); } && ninja -C $(BUILD); \
		r=$$?; $(GIVE_BACK) && exit $$r

test: deps-test ## build with gcc, clang, sanitizers and valgrind, and run every test and gate
	@tools/run-tests

coverage: deps-test ## say which lines of src/ the tests run; less than 90 % is a failure: minutes
	@tools/coverage

soak: build deps-test ## proofs, agents under stress, and random work in trouble, at full length: hours
	@meson configure $(BUILD) -Dtests=true && ninja -C $(BUILD)
	@PINFOLD_BUILD=$(BUILD) PINFOLD_KILLS=200 PINFOLD_HAMMER_SECONDS=60 PINFOLD_IDLE=1000 \
		/usr/bin/python3 -m pytest -q -s -p no:cacheprovider tests/proof
	@PINFOLD_BUILD=$(BUILD) PINFOLD_HTTP_SECONDS=60 \
		/usr/bin/python3 -m pytest -q -p no:cacheprovider -k 64 tests/mcp/test_http_hostile.py
	@test -f $(BUILD)-tsan/build.ninja || \
		meson setup -Db_sanitize=thread -Db_lundef=false -Dtests=true $(BUILD)-tsan
	@ninja -C $(BUILD)-tsan stress-threads
	@PF_STRESS_SECONDS=60 meson test -C $(BUILD)-tsan --no-rebuild --verbose stress_threads
	@PINFOLD_BUILD=$(BUILD) PINFOLD_SOAK_SECONDS=$${PINFOLD_SOAK_SECONDS:-7200} \
		/usr/bin/python3 -m pytest -q -s -p no:cacheprovider tests/soak

bench: build deps-bench ## measure against what people use now, and write bench/results.md
	@meson configure $(BUILD) -Dbench=true && ninja -C $(BUILD)
	@/usr/bin/python3 bench/bench.py $(BUILD)

analyze: deps-analyze ## clang-tidy, cppcheck and gcc -fanalyzer: minutes
	@tools/analyze

fuzz: deps-test ## fuzz every reader of foreign bytes: SECONDS=600 for each, TARGETS="glob wire"
	@tools/fuzz --seconds $(SECONDS) $(TARGETS)

# Both as variables of the shell: any directory's name is one word there. meson would have DESTDIR
# begin at the build.
install: build ## install library, headers, pkg-config file and command: PREFIX=/usr/local DESTDIR=
	@case "$$DESTDIR" in ""|/*) ;; *) DESTDIR="$$PWD/$$DESTDIR" ;; esac; \
		meson configure $(BUILD) -Dprefix="$${PREFIX:-$(PREFIX)}" && meson install -C $(BUILD) --quiet; \
		r=$$?; $(GIVE_BACK) && exit $$r
	@test -n "$$DESTDIR" || test "$$(id -u)" != 0 || ldconfig

docs: deps-test ## leave the manual, with a page for each header, in build/docs for a browser
	@tools/api-reference --html $(BUILD)/docs

deb: ## leave Debian packages in build-deb, and prove that they install, run and go away: minutes
	@packaging/build-deb
	@packaging/check-deb build-deb

clean: ## remove what was built
	@rm -rf build build-*

fmt: deps-test ## format every C file
	@find include src python tests tools examples bench fuzz -name '*.[ch]' 2>/dev/null | xargs clang-format-14 -i

deps-build:
	@tools/deps build

deps-test:
	@tools/deps test

deps-analyze:
	@tools/deps analyze

deps-bench: # without them the tables say what is missing
	@tools/deps bench || true
