package main

// A part is a group of tests that take under an hour together, on two processors that do nothing else.
type part struct {
	name     string
	minutes  int    // about
	packages string // "" is the integration tests'
	tests    []string
}

const (
	identifying = "./pkg/make/buildid"
	verifying   = "./pkg/ship/verify"
)

var parts = []part{
	{"kills", 40, "", []string{
		"TestInterruptedReleaseResumes", "TestKilledReleaseIsTheSameAfterTheSameCommand", "TestKilledEditOfKubernetes",
		"TestFullDiskIsReportedAndTheSameCommandResumes", "TestTreeThatChangesWhileItIsReleasedFails", "TestDamagedArchiveCacheIsNotUsed",
	}},
	{"clones", 50, "", []string{
		"TestOddCloneOnAnOddMachineMakesTheSameRelease", "TestReleaseFromTheSourceTarballIsTheSame", "TestReleaseIsMadeAgainWithoutNetwork",
		"TestCrossCompilesKubectlForArm",
	}},
	{"newcomer", 50, "", []string{"TestReleaseWithoutAnyCacheAndWithANewerGoIsTheSame"}},
	{"bazel", 55, "", []string{"TestBazelMakesWhatTheLocalRoadMakes", "TestBazelMakesWhatPatchesChange", "TestBazelRemote"}},
	{"bazel-release", 55, "", []string{"TestBazelReleaseIsTheBazelRoadsRelease"}},
	{"containers", 45, "", []string{
		"TestContainerReleaseOfTheRealSourcesEqualsTheLocalOne", "TestInterruptedContainerBuildResumes",
		"TestContainerCompilesCgoForOtherPlatforms", "TestContainerRoadLinksTheModuleForFIPS",
		"TestContainerEngineOnAnotherMachine", "TestContainerEngineThatFallsSilentIsReported",
		"TestKilledContainerReleaseIsTheSameAfterTheSameCommand",
	}},
	{"container-release", 45, "", []string{"TestReleaseInAContainerEqualsTheLocalOne"}},
	{"clusters", 50, "", []string{
		"TestKilledClusterIsRemoved", "TestInterruptedClusterIsRemoved", "TestTarballWithoutAnImageIsRefused", "TestOneOfThreeControlPlanesStops",
		"TestClusterWorksWithCgroupVersion2",
	}},
	{"cluster-many-times", 55, "", []string{"TestClusterIsMadeAndRemovedManyTimes"}},
	{"cluster-upgrades", 50, "", []string{"TestClusterIsUpgradedAndTurnedBack"}},
	{"faults-of-the-api", 45, "", []string{"TestEachCheckOfTheAPISeesWhatIsBroken"}},
	{"faults-of-programs", 55, "", []string{"TestEachCheckOfProgramsSeesWhatIsBroken"}},
	{"conformance", 15, "", []string{"TestVariedSpecsPass"}},
	{"other-minors", 55, "", []string{"TestTreeOfAnotherMinorBootsAndWorks"}},
	{"oldest-minor", 55, "", []string{"TestTreeOfTheOldestMinorBootsAndWorks"}},
	{"month", 50, "", []string{"TestTreeMovesToAnotherMinorAndBack", "TestOneMonthOfAMaintainer"}},
	{"fork", 10, "", []string{"TestForkHasAPathOfItsOwn"}},
	{"generated", 35, "", []string{"TestGeneratorsMakeUpstreamsFiles", "TestAPIGroupOfADistribution", "TestFieldOfAPatchIsInEveryAPI"}},
	{"kubernetes-tests", 30, "", []string{"TestKubernetesOwnIntegrationTests", "TestKubectlCommandTests", "TestAllKubectlCommandTests"}},
	{"kubernetes-units", 55, "", []string{"TestKubernetesUnitTestsFailAsDocumented"}},
	{"staging-units", 40, "", []string{"TestStagingUnitTestsFailAsDocumented"}},
	{"bazel-units-staging-a", 55, "", []string{"TestStagingUnitTestsOfAByBazel"}},
	{"bazel-units-staging", 55, "", []string{"TestStagingUnitTestsOfOthersByBazel"}},
	{"bazel-units-to-k", 55, "", []string{"TestUnitTestsOfPackagesToKByBazel"}},
	{"bazel-units-from-k", 55, "", []string{"TestUnitTestsOfPackagesFromKByBazel"}},
	{"bazel-units-other", 55, "", []string{"TestUnitTestsOfOtherFoldersByBazel"}},
	{"publications", 15, "", []string{"TestSiteOfPublishedReleases", "TestBundleIsWholeOrNotThere"}},
	{"repositories", 20, "", []string{"TestRepositoriesAreReadWhilePublished", "TestPublisherOfPackagesFails"}},
	{"documents", 15, "", []string{"TestBillsOfMaterialsHaveWhatSyftFinds"}},
	{"elsewhere", 40, "", []string{
		"TestReleaseOfASharedCache", "TestInputsAreEnoughWithoutNetwork", "TestVulnerabilitiesOfARelease",
		"TestPatchIsEditedInUpstreamsRepository",
		"TestSharedCacheBehindAProxy", "TestContainersTakePackagesOfASharedCache",
	}},
	{"platforms-linux-servers", 55, "", []string{
		"TestReleaseForLinuxAMD64", "TestReleaseForLinuxARM64", "TestReleaseForLinuxPPC64LE", "TestReleaseForLinuxS390X",
	}},
	{"platforms-clients", 55, "", []string{
		"TestReleaseForLinux386", "TestReleaseForLinuxARM", "TestReleaseForDarwinAMD64", "TestReleaseForDarwinARM64",
		"TestReleaseForWindowsAMD64", "TestReleaseForWindowsARM64", "TestReleaseForWindows386",
	}},
	{"build-ids", 10, identifying, []string{"TestIDsAreThoseOfTheGoCommandOnOtherPlatforms", "TestIDsAreThoseOfTheNextGoCommand"}},
	{"changed-bytes", 10, verifying, []string{"TestTenThousandChangedBytesAreFound"}},
}
